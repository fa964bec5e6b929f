"""Item handlers: a function that is called for each item of an array, some at a time.

For the worker an item handler is a handler like any other, whose jobs are the array's chunks. It
keeps which items are done and which have failed in the checkpoint, so that an attempt that ends
halfway is gone on with, and returns the same as its result, by which the operator counts.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from random import random
from typing import Any, Final

import structlog
from pydantic import TypeAdapter, ValidationError

from asyncjob.app.context import JobContext
from asyncjob.app.error_report import (
    CategoryMapping,
    ErrorKind,
    ErrorReport,
    to_error_report,
    to_payload_error_report,
)
from asyncjob.app.errors import Fail, HandlerExitError
from asyncjob.app.handler import Handler, HandlerError, Isolation, build_handler
from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.chunks import (
    CHUNK_TYPE_SUFFIX,
    ERRORS_KEPT,
    ChunkReport,
    ChunkWork,
    ItemError,
    read_checkpoint,
    read_chunk_work,
)
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.policy import (
    Category,
    EffectivePolicy,
    PolicyLayer,
    is_retryable_category,
    read_policy_layer,
    requested_delay,
    resolve_policy,
    retry_delay,
)

MAX_ITEM_CONCURRENCY: Final = 64
"""Items of one chunk at a time. It bounds the gaps between items that are done, which an array has
to keep of a chunk that is lost."""

MAX_ITEM_DELAY_SECONDS: Final = 60.0
"""Longest delay between two tries of an item: it holds its place among the items of its chunk."""

FLUSH_SECONDS: Final = 1.0
"""Seconds between two checkpoints of a chunk: the items of this time are run again after a crash.
"""

MAX_TURN_SECONDS: Final = 0.01
"""For how long the items of a chunk hold the event loop: an `async def` handler need not await
anything, and the heartbeats of all jobs depend on the loop."""


@dataclass(frozen=True, slots=True)
class ItemContext:
    """One item of an array, as its handler sees it."""

    chunk: JobContext
    """The job that runs the item, among others."""

    array: str
    """Name of the array."""

    array_uid: str
    """UID of the array."""

    number: int
    """Number of the item, from 0."""

    attempt: int
    """Number of this try within the attempt of the chunk, from 1."""

    @property
    def key(self) -> str:
        """`uid/number`: the same whenever the item is run, and of no other item ever."""
        return f"{self.array_uid}/{self.number}"

    @property
    def cancelled(self) -> bool:
        """Whether the item is to stop; an async handler is interrupted, a sync one has to look."""
        return self.chunk.cancelled

    @property
    def log(self) -> structlog.typing.FilteringBoundLogger:
        """A structlog logger that says which array, item and chunk; usable from any thread."""
        return self.chunk.log.bind(array=self.array, item=self.number)


def build_item_handler(
    type_: str,
    function: Callable[..., Any],
    policy: PolicyLayer,
    categories: CategoryMapping,
    *,
    concurrency: int = 1,
    isolation: str | None = None,
) -> Handler:
    """Return the handler of an array's chunks; raises HandlerError that says what is wrong."""
    if isolation is not None:
        raise HandlerError(
            f"item handler {type_!r}: isolation={isolation!r} is not for items: a process for each "
            "would cost more than the item; run a program in it, or use @app.handler"
        )
    if type(concurrency) is not int or not 1 <= concurrency <= MAX_ITEM_CONCURRENCY:
        raise HandlerError(
            f"item handler {type_!r}: concurrency is {concurrency!r}, not a whole number from 1 to "
            f"{MAX_ITEM_CONCURRENCY}"
        )
    item_handler = build_handler(type_, function, policy, context=ItemContext)
    runner = _ChunkHandler(item_handler, categories, concurrency)
    return Handler(
        type=type_ + CHUNK_TYPE_SUFFIX,
        function=runner.run,
        isolation=Isolation.LOOP,
        takes_payload=True,
        payload_adapter=TypeAdapter(dict[str, Any]),
        result_adapter=None,
        policy=policy,
        needs=item_handler.needs,
    )


@dataclass(frozen=True, slots=True)
class _ChunkHandler:
    """Runs chunks of one type."""

    item_handler: Handler
    categories: CategoryMapping
    concurrency: int

    async def run(
        self, job: JobContext, payload: Mapping[str, Json], **resources: object
    ) -> dict[str, Json]:
        """Run the items of a chunk that no earlier attempt has, and return which have failed."""
        try:
            work = read_chunk_work(payload)
        except ValueError as error:
            raise Fail(f"not a chunk of an array: {error}", category=Category.VALIDATION) from None
        if work.item_timeout_seconds is not None and not self.item_handler.is_async:
            raise Fail(
                "itemTimeoutSeconds needs an `async def` item handler: a thread cannot be stopped",
                category=Category.VALIDATION,
            )
        policy = resolve_policy(
            read_policy_layer({"retryPolicy": work.retry}), self.item_handler.policy
        )
        run = _ChunkRun(
            job,
            work,
            policy=policy,
            handler=self.item_handler,
            function=partial(self.item_handler.function, **resources),
            categories=self.categories,
        )
        return await run.run(self.concurrency)


class _ChunkRun:
    """One attempt of one chunk."""

    def __init__(
        self,
        job: JobContext,
        work: ChunkWork,
        *,
        policy: EffectivePolicy,
        handler: Handler,
        function: Callable[..., Any],
        categories: CategoryMapping,
    ) -> None:
        self._job = job
        self._work = work
        self._policy = policy
        self._handler = handler
        self._function = function
        self._categories = categories
        self._known = read_checkpoint(job.last_checkpoint, work.items)
        self._done: list[int] = []
        self._failed: list[int] = []
        self._errors = list(self._known.errors)
        self._threads: ThreadPoolExecutor | None = None
        self._flushed = 0

    async def run(self, concurrency: int) -> dict[str, Json]:
        """Run what is left to run."""
        left = iter(self._work.items - self._known.done - self._known.failed)
        if not self._handler.is_async:
            self._threads = ThreadPoolExecutor(concurrency, "item")
        try:
            async with asyncio.TaskGroup() as group:
                flusher = group.create_task(self._flush_now_and_then())
                turn = MAX_TURN_SECONDS / concurrency
                lanes = [group.create_task(self._run_lane(left, turn)) for _ in range(concurrency)]
                await asyncio.wait(lanes)
                flusher.cancel()
        finally:
            self._flush()
            if self._threads is not None:
                self._threads.shutdown(wait=False)
        return self._report().result()

    async def _run_lane(self, left: Iterator[int], turn: float) -> None:
        """Run items one by one, and let others have the event loop after each turn of seconds."""
        clock = asyncio.get_running_loop().time
        turn_ends = clock() + turn
        for item in left:
            error = await self._run_item(item)
            if error is None:
                self._done.append(item)
            else:
                self._failed.append(item)
                self._errors = [*self._errors, error][-ERRORS_KEPT:]
            if clock() >= turn_ends:
                await asyncio.sleep(0)
                turn_ends = clock() + turn

    async def _run_item(self, item: int) -> ItemError | None:
        """Run an item until it is done or has failed for good."""
        value = self._value(item)
        retries = 0
        while (report := await self._try(item, value, retries + 1)) is not None:
            delay = self._retry_delay(report, retries)
            if delay is None:
                return ItemError(item, report.type, report.category, report.message)
            await asyncio.sleep(min(delay, MAX_ITEM_DELAY_SECONDS))
            retries += 1
        return None

    def _value(self, item: int) -> Json:
        if self._work.inline is None:
            return item
        return self._work.inline[self._work.items.position(item)]

    def _retry_delay(self, report: ErrorReport, retries: int) -> float | None:
        """Return after how many seconds to try again, None if not at all."""
        if retries >= self._work.item_retries:
            return None
        if report.kind is ErrorKind.RETRY and report.retry_after is not None:
            return requested_delay(report.retry_after)
        is_final = report.kind not in {ErrorKind.FAILURE, ErrorKind.RETRY}
        if is_final or not is_retryable_category(self._policy, report.category):
            return None
        return retry_delay(self._policy, retries, random())

    async def _try(self, item: int, value: Json, attempt: int) -> ErrorReport | None:
        """Call the handler once; return what went wrong, None if nothing did."""
        work = self._work
        context = ItemContext(self._job, work.array, work.array_uid, item, attempt)
        try:
            argument = self._handler.read_payload(value)
        except ValidationError as error:
            return to_payload_error_report(error)
        except Exception as error:  # noqa: BLE001  # the handler's own validators may raise anything
            return to_error_report(error, self._categories)
        arguments = (context, argument) if self._handler.takes_payload else (context,)
        limit = work.item_timeout_seconds
        try:
            async with asyncio.timeout(limit):
                await self._call(arguments)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            itself = HandlerExitError("the item handler cancelled itself")
            return to_error_report(itself, self._categories)
        except (SystemExit, KeyboardInterrupt) as ending:
            exit_ = HandlerExitError(f"the item handler raised {type(ending).__name__}")
            return to_error_report(exit_, self._categories)
        except Exception as error:  # noqa: BLE001  # a handler may raise anything
            return to_error_report(error, self._categories)
        return None

    async def _call(self, arguments: tuple[object, ...]) -> None:
        if self._threads is None:
            await self._function(*arguments)
            return
        future = asyncio.get_running_loop().run_in_executor(
            self._threads, _guarded, self._function, arguments
        )
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError:
            # A thread cannot be interrupted: the item is to see that it is cancelled, and return.
            await asyncio.wait({future})
            raise

    async def _flush_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            self._flush()

    def _flush(self) -> None:
        """Report what is done since the last time, if anything is."""
        count = len(self._done) + len(self._failed)
        if count == self._flushed:
            return
        self._flushed = count
        report, total = self._report(), len(self._work.items)
        counted = len(report.done) + len(report.failed)
        failed = f", {len(report.failed)} failed" if report.failed else ""
        self._job.checkpoint(report.checkpoint(self._work.items))
        self._job.progress(counted * 100 / total, f"{counted} of {total} items{failed}")

    def _report(self) -> ChunkReport:
        return ChunkReport(
            self._known.done | ItemRanges.of(self._done),
            self._known.failed | ItemRanges.of(self._failed),
            tuple(self._errors),
        )


def _guarded(function: Callable[..., Any], arguments: tuple[object, ...]) -> None:
    """Call a sync item handler; what would end the thread's pool is an error like any other."""
    try:
        function(*arguments)
    except (SystemExit, KeyboardInterrupt) as ending:
        raise HandlerExitError(f"the item handler raised {type(ending).__name__}") from None
