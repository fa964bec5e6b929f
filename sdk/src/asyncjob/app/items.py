"""Item handlers: a function that is called for each item of an array, some at a time.

For the worker an item handler is a handler like any other, whose jobs are the array's chunks. It
keeps which items are done and which have failed in the checkpoint, so that an attempt that ends
halfway is gone on with, and returns the same as its result, by which the operator counts.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
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
from asyncjob.app.item_files import BrokenRecord, ItemValue, read_items
from asyncjob.app.item_results import open_results
from asyncjob.free_json import FreeJsonError
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
from asyncjob.lifecycle.phases import Reason
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

    payload: Json = None
    """What all items of the array share, `spec.payload`: as it is, checked by no type."""

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
    memory_mib: int | None = None,
) -> Handler:
    """Return the handler of an array's chunks; raises HandlerError that says what is wrong.

    With `isolation` each chunk runs in a process of its own, and its items in there, in the event
    loop or in threads.
    """
    if type(concurrency) is not int or not 1 <= concurrency <= MAX_ITEM_CONCURRENCY:
        raise HandlerError(
            f"item handler {type_!r}: concurrency is {concurrency!r}, not a whole number from 1 to "
            f"{MAX_ITEM_CONCURRENCY}"
        )
    item_handler = build_handler(
        type_, function, policy, isolation=isolation, memory_mib=memory_mib, context=ItemContext
    )
    runner = _ChunkHandler(item_handler.inside_process(), categories, concurrency)
    return Handler(
        type=type_ + CHUNK_TYPE_SUFFIX,
        function=runner.run,
        isolation=Isolation.PROCESS if isolation else Isolation.LOOP,
        takes_payload=True,
        payload_adapter=TypeAdapter(dict[str, Any]),
        result_adapter=None,
        policy=policy,
        memory_mib=memory_mib,
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
        self._results = open_results(job, work.results, handler, self._done.append)
        self._threads: ThreadPoolExecutor | None = None
        self._flushed = 0

    async def run(self, concurrency: int) -> dict[str, Json]:
        """Run what is left to run."""
        feed = _ItemFeed(self._items())
        if not self._handler.is_async:
            count = min(concurrency, len(self._work.items))
            self._threads = _start_threads(count, self._handler.memory_mib)
        try:
            async with asyncio.TaskGroup() as group:
                turn = MAX_TURN_SECONDS / concurrency
                lanes = [group.create_task(self._run_lane(feed, turn)) for _ in range(concurrency)]
                # No task that sleeps: the test kit lets time pass while there is one, and it may
                # pass only if the items themselves sleep.
                while (await asyncio.wait(lanes, timeout=FLUSH_SECONDS))[1]:
                    await self._results.save()
                    self._flush()
            await self._results.finish()
        finally:
            await self._results.save_last()
            self._flush()
            if self._threads is not None:
                self._threads.shutdown(wait=False)
            await feed.close()
        if (error := self._results.error or feed.error) is not None:
            raise error
        return self._report().result()

    async def _items(self) -> AsyncGenerator[tuple[int, ItemValue], None]:
        """Yield the items that no earlier attempt has run, and their values."""
        work = self._work
        left = work.items - self._known.done - self._known.failed
        if work.file is not None:
            async with aclosing(read_items(self._job.files, work.file, left)) as records:
                async for numbered in records:
                    yield numbered
            return
        for item in left:
            yield item, item if work.inline is None else work.inline[work.items.position(item)]

    async def _run_lane(self, feed: "_ItemFeed", turn: float) -> None:
        """Run items one by one, and let others have the event loop after each turn of seconds."""
        clock = asyncio.get_running_loop().time
        turn_ends = clock() + turn
        while await self._results.room() and (numbered := await feed.next_item()) is not None:
            item, value = numbered
            error = await self._run_item(item, value)
            if error is not None:
                self._failed.append(item)
                self._errors = [*self._errors, error][-ERRORS_KEPT:]
            if clock() >= turn_ends:
                await asyncio.sleep(0)
                turn_ends = clock() + turn

    async def _run_item(self, item: int, value: ItemValue) -> ItemError | None:
        """Run an item until it is done or has failed for good."""
        if isinstance(value, BrokenRecord):
            return ItemError(item, "BrokenRecord", Category.VALIDATION.value, value.message)
        retries = 0
        while (report := await self._try(item, value, retries + 1)) is not None:
            delay = self._retry_delay(report, retries)
            if delay is None:
                return ItemError(item, report.type, report.category, report.message)
            await asyncio.sleep(min(delay, MAX_ITEM_DELAY_SECONDS))
            retries += 1
        return None

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
        context = ItemContext(self._job, work.array, work.array_uid, item, attempt, work.payload)
        try:
            argument = self._handler.read_payload(value)
        except ValidationError as error:
            return to_payload_error_report(error)
        except Exception as error:  # noqa: BLE001  # the handler's own validators may raise anything
            return self._error_report(error)
        arguments = (context, argument) if self._handler.takes_payload else (context,)
        limit = work.item_timeout_seconds
        try:
            async with asyncio.timeout(limit):
                result = await self._call(arguments)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return self._error_report(HandlerExitError("the item handler cancelled itself"))
        except (SystemExit, KeyboardInterrupt) as ending:
            exit_ = HandlerExitError(f"the item handler raised {type(ending).__name__}")
            return self._error_report(exit_)
        except Exception as error:  # noqa: BLE001  # a handler may raise anything
            return self._error_report(error)
        return self._keep(item, result)

    def _keep(self, item: int, result: object) -> ErrorReport | None:
        """Keep a result; return what is wrong with it. To run the item again would not help."""
        try:
            self._results.add(item, result)
        except FreeJsonError as error:
            refused = Reason.RESULT_REFUSED.value
            return ErrorReport(ErrorKind.REFUSED, refused, Category.VALIDATION, str(error))
        return None

    def _error_report(self, error: Exception) -> ErrorReport:
        return to_error_report(error, self._categories, memory_mib=self._handler.memory_mib)

    async def _call(self, arguments: tuple[object, ...]) -> object:
        if self._threads is None:
            return await self._function(*arguments)
        future = asyncio.get_running_loop().run_in_executor(
            self._threads, _guarded, self._function, arguments
        )
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # A thread cannot be interrupted: the item is to see that it is cancelled, and return.
            await asyncio.wait({future})
            raise

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


class _ItemFeed:
    """Gives items to whichever lane asks next.

    Where no more can be read, the items under way are run to their end; `error` says why.
    """

    def __init__(self, items: AsyncGenerator[tuple[int, ItemValue], None]) -> None:
        self._items = items
        self._turn = asyncio.Lock()
        self._over = False
        self.error: Exception | None = None

    async def next_item(self) -> tuple[int, ItemValue] | None:
        """Return the next item, None if there is none."""
        async with self._turn:
            if self._over:
                return None
            try:
                return await anext(self._items)
            except StopAsyncIteration:
                pass
            except Exception as error:  # noqa: BLE001  # drivers raise anything; the job ends with it
                self.error = error
            self._over = True
            return None

    async def close(self) -> None:
        """Stop reading."""
        await self._items.aclose()


def _start_threads(count: int, memory_mib: int | None) -> ThreadPoolExecutor:
    """Return a pool whose threads all run: one that there is no room for later fails its item."""
    threads, started = ThreadPoolExecutor(count, "item"), threading.Barrier(count)
    try:
        for _ in range(count):
            threads.submit(started.wait)
    except RuntimeError as error:
        started.abort()
        threads.shutdown(wait=False)
        room = "let the worker have more threads"
        if memory_mib is not None:
            room = f"raise memory_mib={memory_mib}: the stack of each thread counts, mostly 8 MiB"
        raise RuntimeError(
            f"cannot start {count} threads for items: {error}; lower concurrency, or {room}"
        ) from error
    return threads


def _guarded(function: Callable[..., Any], arguments: tuple[object, ...]) -> object:
    """Call a sync item handler; what would end the thread's pool is an error like any other."""
    try:
        return function(*arguments)
    except (SystemExit, KeyboardInterrupt) as ending:
        raise HandlerExitError(f"the item handler raised {type(ending).__name__}") from None
