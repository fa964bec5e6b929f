"""What an item handler returns: it is stored before its item counts as done.

An attempt of a chunk keeps the results of its last items in memory and writes them about once a
second, in one object that is written whole each time, until it is large enough for another to be
begun. So there is about one object for a chunk, and it holds whatever the checkpoint says is done.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from asyncjob.app.context import JobContext
from asyncjob.app.error_report import describe_error
from asyncjob.app.errors import Fail
from asyncjob.app.files import ResultFolder
from asyncjob.app.handler import Handler
from asyncjob.backoff import backoff_delay, with_jitter
from asyncjob.free_json import FreeJsonError, TooManyBytesError, encode
from asyncjob.lifecycle.arrays.item_results import ResultTarget, object_path, result_line
from asyncjob.lifecycle.policy import Category
from asyncjob.lifecycle.timestamps import try_parse_timestamp
from asyncjob.offload.errors import OffloadError

MAX_RESULT_BYTES: Final = 256 * 1024
"""The most bytes of the result of one item, as JSON."""

OBJECT_BYTES: Final = 1024 * 1024
"""At this size an object is left as it is, and another one begun: each second writes again at most
this much."""

WAITING_BYTES: Final = 4 * 1024 * 1024
"""While this many bytes of results are not stored, no further item begins: they are in memory."""

WRITE_SHARE: Final = 0.1
"""Share of the time that writing takes at most, unless much waits: a store that is slow is written
to less often."""

MAX_WRITE_PAUSE_SECONDS: Final = 30.0
"""Longest time between two writes: the items of this time are run again after a crash."""

PATIENCE_SECONDS: Final = 60.0
"""For how long a chunk waits for a store that does not answer, before its attempt fails."""

RETRY_SECONDS: Final = 0.5
MAX_RETRY_SECONDS: Final = 10.0
"""Pauses after writes that failed: the first, and the longest, as for results of jobs."""

MAX_REFUSALS: Final = 4
"""After this many refusals in a row the store is taken at its word."""

MARGIN_SECONDS: Final = 5.0
"""Before the end of the attempt's time: what runs until then would be taken for an item that hangs.
"""

LAST_WRITE_SECONDS: Final = 3.0
"""For the last write of an attempt that has to stop: a worker gives handlers five seconds to."""

_ADVICE: Final = "let the handler store what is large, and return its address"


class ResultsNotStored(OffloadError):  # noqa: N818  # a name that is shown, like its sibling's
    """The store has not taken the results of the items; it may, another time.

    The operator knows both errors by their names.
    """

    retryable = True


class ResultsRefused(Fail):
    """The store will not take the results of the items."""


class DroppedResults:
    """Results that nobody keeps: an item is done when its handler has returned."""

    def __init__(self, on_done: Callable[[int], object]) -> None:
        self._on_done = on_done

    @property
    def error(self) -> None:
        """None: nothing is stored."""

    def add(self, item: int, result: object) -> None:  # noqa: ARG002  # dropped
        """Call the item done."""
        self._on_done(item)

    async def room(self) -> bool:
        """Return at once that another item may begin."""
        return True

    async def save(self) -> None:
        """Do nothing."""

    async def finish(self) -> None:
        """Do nothing."""

    async def save_last(self) -> None:
        """Do nothing."""


class KeptResults:
    """The results of one attempt of a chunk, on their way to the store.

    `on_done` is called with each item whose result is stored. Raises OffloadError at once if they
    may not go where the array wants them.
    """

    def __init__(
        self,
        job: JobContext,
        target: ResultTarget,
        handler: Handler,
        on_done: Callable[[int], object],
    ) -> None:
        self._job = job
        self._target = target
        self._handler = handler
        self._on_done = on_done
        self._folder: ResultFolder = job.files.results(target.folder)
        self._waiting: list[tuple[int, bytes]] = []
        self._waiting_bytes = 0
        self._written: list[bytes] = []
        self._written_bytes = 0
        self._number = 0
        self._turn = asyncio.Lock()
        self._room = asyncio.Event()
        self._room.set()
        self._clock = asyncio.get_running_loop().time
        self._due_at = self._clock()
        self._failing_since: float | None = None
        self._refusals = 0
        self._failures = 0
        self._error: Exception | None = None

    @property
    def error(self) -> Exception | None:
        """Why no further result can be stored, if none can."""
        return self._error

    def add(self, item: int, result: object) -> None:
        """Take the result of an item; raises FreeJsonError for what cannot be stored."""
        line = result_line(item, _encode(self._handler, result))
        self._waiting.append((item, line))
        self._waiting_bytes += len(line)

    async def room(self) -> bool:
        """Return once another item may begin: not while the store fails, nor while much waits."""
        if self._waiting_bytes >= WAITING_BYTES and self._failing_since is None:
            await self._write()
        await self._room.wait()
        return self._error is None

    async def save(self) -> None:
        """Write what waits, if it is time to.

        Not shortly before the attempt's time is up: a write that does not end by then would look as
        if the store did not answer. What waits is written once more when the attempt is stopped.
        """
        is_due = self._clock() >= self._due_at and self._job.seconds_left > MARGIN_SECONDS
        if self._error is None and is_due:
            await self._write()

    async def finish(self) -> None:
        """Write all that waits; tried again until it has worked, or `error` says why not."""
        while self._waiting and self._error is None:
            if self._failing_since is not None:
                await asyncio.sleep(max(self._due_at - self._clock(), 0))
            await self._write()

    async def save_last(self) -> None:
        """Write what waits once: the attempt is being stopped."""
        if self._error is None:
            await self._write(LAST_WRITE_SECONDS)

    async def _write(self, seconds: float | None = None) -> None:
        async with self._turn:
            if not self._waiting or self._error is not None:
                return
            waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
            began, stored = self._clock(), False
            try:
                async with asyncio.timeout(self._limit() if seconds is None else seconds):
                    await self._write_object([*self._written, *(line for _, line in waiting)])
                stored = True
            except TimeoutError:
                self._on_failure("the store did not answer in time", refused=False)
            except OffloadError as error:
                self._on_failure(str(error), refused=not error.retryable)
            finally:
                if not stored:
                    self._take_back(waiting)
            if stored:
                self._on_stored(waiting, began)

    async def _write_object(self, lines: Sequence[bytes]) -> None:
        target, info = self._target, self._job.info
        since = try_parse_timestamp(info.created_at)
        created = int(since.timestamp()) if since else 0
        folder, name = object_path(target.generation, created, info.attempt, info.uid, self._number)
        await self._folder.write(folder, name, b"".join(lines))

    def _limit(self) -> float:
        """Return for how many seconds a write may go on."""
        left = self._job.seconds_left
        return max(left - MARGIN_SECONDS, left / 2, 0.1)

    def _take_back(self, waiting: list[tuple[int, bytes]]) -> None:
        """Have these written again, under a name that the failed write does not know.

        What has not been answered may still arrive, and later than what is written meanwhile. What
        was stored under the old name is in the failed write as well.
        """
        self._waiting = waiting + self._waiting
        self._waiting_bytes = sum(len(line) for _, line in self._waiting)
        self._begin_object()

    def _begin_object(self) -> None:
        self._number += 1
        self._written, self._written_bytes = [], 0

    def _on_stored(self, waiting: list[tuple[int, bytes]], began: float) -> None:
        self._written += [line for _, line in waiting]
        self._written_bytes += sum(len(line) for _, line in waiting)
        if self._written_bytes >= OBJECT_BYTES:
            self._begin_object()
        now = self._clock()
        pause = (now - began) * (1 / WRITE_SHARE - 1)
        self._due_at = now + min(pause, MAX_WRITE_PAUSE_SECONDS)
        self._failing_since, self._refusals = None, 0
        self._failures = 0
        self._room.set()
        for item, _ in waiting:
            self._on_done(item)

    def _on_failure(self, why: str, *, refused: bool) -> None:
        now = self._clock()
        if self._failing_since is None:
            self._failing_since = now
        self._refusals = self._refusals + 1 if refused else 0
        self._failures += 1
        pause = backoff_delay(self._failures, RETRY_SECONDS, MAX_RETRY_SECONDS)
        self._due_at = now + with_jitter(pause)
        self._room.clear()
        message = f"results of items cannot be stored: {why}"
        self._job.log.warning(message)
        if self._refusals >= MAX_REFUSALS:
            self._error = ResultsRefused(message, category=Category.VALIDATION)
        elif (
            now - self._failing_since >= PATIENCE_SECONDS
            or self._due_at - now >= self._job.seconds_left - MARGIN_SECONDS
        ):
            self._error = ResultsNotStored(message)
        if self._error is not None:
            self._room.set()  # who waits is to see it


def _encode(handler: Handler, result: object) -> bytes:
    try:
        plain = handler.dump_result(result)
        return encode(plain, what="the result", max_bytes=MAX_RESULT_BYTES)
    except TooManyBytesError as error:
        raise TooManyBytesError(f"{error}; {_ADVICE}") from None
    except FreeJsonError:
        raise
    except Exception as error:  # a serializer of the handler's own may raise anything
        raise FreeJsonError(f"the result is not JSON: {describe_error(error)}") from error


def open_results(
    job: JobContext,
    target: ResultTarget | None,
    handler: Handler,
    on_done: Callable[[int], object],
) -> DroppedResults | KeptResults:
    """Return where results go. Raises ResultsRefused for where they may not go."""
    if target is None:
        return DroppedResults(on_done)
    try:
        return KeptResults(job, target, handler, on_done)
    except OffloadError as error:
        raise ResultsRefused(f"results.uri: {error}", category=Category.VALIDATION) from error
