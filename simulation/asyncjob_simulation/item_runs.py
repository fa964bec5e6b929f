"""Handlers of items of arrays, and what they note of them themselves."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob import WorkerApp
from asyncjob.app.context import JobContext
from asyncjob.app.items import ItemContext
from asyncjob.lifecycle.arrays.chunks import chunk_type
from asyncjob_simulation.handlers import HandlerCalls, RecordedCall
from asyncjob_simulation.processes import current_process

ITEMS: Final = "tally"
"""The type of the arrays."""

ISOLATED_ITEMS: Final = "tally-apart"
"""The type of those whose chunks have a process each."""

_CHUNKS: Final = tuple(
    chunk_type(type_, has_results=kept)
    for type_ in (ITEMS, ISOLATED_ITEMS)
    for kept in (False, True)
)
AT_A_TIME: Final = 2
FOREVER: Final = 100_000.0

Item = tuple[str, int]
"""UID of an array and number of an item."""


@dataclass
class ItemRuns:
    """What has become of items, as far as their handlers know."""

    calls: HandlerCalls
    count: Callable[[str], None]
    done: set[Item] = field(default_factory=set)
    failed: set[Item] = field(default_factory=set)
    begun: dict[Item, int] = field(default_factory=lambda: defaultdict(int))
    mended: set[str] = field(default_factory=set)
    """UIDs of arrays whose items do no harm any more."""

    is_counted: Callable[[Item], bool] = lambda _: False
    """Whether an item counts as done in the array."""

    is_skipped: Callable[[Item], bool] = lambda _: False
    """Whether an array skips an item."""

    def run_of(self, chunk: JobContext) -> RecordedCall:
        """Return the run of the chunk that an item is run in."""
        runs = reversed(self.calls.runs[chunk.uid])
        return next(run for run in runs if run.attempt == chunk.info.attempt)

    def begin(self, item: Item, chunk: JobContext) -> None:
        """Note that an item is run."""
        self.begun[item] += 1
        run, process = self.run_of(chunk), current_process()
        assert process is not None  # handlers run in workers only
        run.process = process  # the chunk's own, which middleware does not know
        is_current = run is self.calls.runs[chunk.uid][-1]
        if self.is_counted(item) and is_current and not run.stood_still(self.calls.loop.time()):
            words = f"item {item[1]} is run in {run.process.name}, and has been counted"
            self.calls.problems.append(("what is counted is not run again", chunk.name, words))
        if self.is_skipped(item):
            words = f"item {item[1]} is run in {run.process.name}"
            self.calls.problems.append(("what is skipped is not run", chunk.name, words))
        if self.begun[item] > 1:
            self.count("item again")

    def end(self, item: Item, chunk: JobContext, *, failed: bool) -> None:
        """Note that an item has been run."""
        self.calls.step(self.run_of(chunk))
        (self.failed if failed else self.done).add(item)


def add_item_handlers(app: WorkerApp, runs: ItemRuns) -> None:
    """Have an app run items as well."""

    @app.middleware
    async def noted(job: JobContext, call_next: Callable[[], Awaitable[Any]]) -> Any:
        if job.info.type not in _CHUNKS:
            return await call_next()
        run, returned = runs.calls.begin(job), False
        try:
            result = await call_next()
            returned = True
            return result
        finally:
            runs.calls.end(run, returned=returned)

    async def tally(context: ItemContext, _: Any) -> dict[str, str]:
        item, told = (context.array_uid, context.number), context.payload
        assert isinstance(told, dict)  # as the workload has it
        is_harmful = context.array_uid not in runs.mended
        runs.begin(item, context.chunk)
        await asyncio.sleep(told["pause"])
        if is_harmful and context.number in told["killing"]:
            process = current_process()
            assert process is not None  # handlers run in workers only
            is_apart = process is not process.container
            runs.count(f"item ends its {'process' if is_apart else 'worker'}")
            process.kill_after(1)
            await asyncio.sleep(FOREVER)
        fails = is_harmful and context.number in told["failing"]
        runs.end(item, context.chunk, failed=fails)
        if fails:
            raise ValueError("fails as its array says")
        return {"by": f"{context.chunk.uid}/{context.chunk.info.attempt}"}

    app.item_handler(ITEMS, concurrency=AT_A_TIME)(tally)
    app.item_handler(ISOLATED_ITEMS, concurrency=AT_A_TIME, isolation="process")(tally)
