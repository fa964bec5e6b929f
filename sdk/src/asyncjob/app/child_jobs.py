"""Child jobs and arrays as what submits them and waits for them knows them.

`ChildView`, and the protocols `ChildJobs` and `ChildWaits` of a worker, a test, or the parent of a
handler process.
"""

import asyncio
import concurrent.futures
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, Generic, Protocol, TypeVar

from asyncjob.app.child_manifest import ChildManifest, called_child
from asyncjob.app.errors import (
    ChildFailedError,
    ChildGoneError,
    SubmitError,
    ending_as_a_stop,
)
from asyncjob.json_types import Json, JsonObject, as_object, child, integer, text
from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES, ArrayPhase
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.names import ARRAY_KIND, JOB_KIND


@dataclass(frozen=True, slots=True)
class ChildRef:
    """Which job, or which array, a child is."""

    name: str
    uid: str
    kind: str = JOB_KIND
    """AsyncJob or AsyncArray."""

    @property
    def called(self) -> str:
        """What people call it: `child pack-1`, `array thumbs`."""
        return f"{called_child(self.kind)} {self.name}"


@dataclass(frozen=True, slots=True)
class ItemCounts:
    """How far an array is: how many items it has, and what has become of them."""

    total: int
    succeeded: int
    failed: int
    failed_items: str = ""
    """The numbers of the failed items, like `17,400-402`; of many not all (`failedUnlisted`)."""


NO_ITEMS: Final = ItemCounts(0, 0, 0)


@dataclass(frozen=True, slots=True)
class ChildView:
    """A child as it was when it was looked at. `error_…` are empty without an error.

    `result_ref` is as in its status, where the result is kept elsewhere. An array (`kind`) has
    `items`, and neither attempts nor a result; its errors are in its status.
    """

    name: str
    uid: str
    type: str
    phase: Phase | ArrayPhase
    reason: str
    message: str
    attempt: int
    result: Json = None
    result_ref: Json = None
    error_type: str = ""
    error_category: str = ""
    error_message: str = ""
    kind: str = JOB_KIND
    items: ItemCounts = NO_ITEMS

    @property
    def finished(self) -> bool:
        """Whether nothing happens to it without a person."""
        return self.phase in FINISHED_PHASES or self.phase in ENDED_ARRAY_PHASES

    @property
    def succeeded(self) -> bool:
        """Whether it has succeeded."""
        return self.phase in (Phase.SUCCEEDED, ArrayPhase.SUCCEEDED)

    def check(self) -> "ChildView":
        """Return itself; raises ChildFailedError unless it has succeeded."""
        if not self.succeeded:
            why = f"{self.reason}: {self.message}".strip(": ")
            what = f"{called_child(self.kind)} {self.name}"
            raise ChildFailedError(f"{what} ended as {self.phase.value} ({why})")
        return self


ChildEnd = ChildView | ChildGoneError
"""What has become of a child that was waited for."""


def end_to_json(end: ChildEnd) -> JsonObject:
    """Return the form of the end of a child that crosses from one process to another."""
    if isinstance(end, ChildGoneError):
        return {"gone": str(end)}
    return view_to_json(end)


def read_end(plain: JsonObject) -> ChildEnd:
    """Read that form."""
    if "gone" in plain:
        return ChildGoneError(text(plain, "gone"))
    return with_its_types(ChildView(**plain))  # type: ignore[arg-type]


def view_to_json(view: ChildView) -> JsonObject:
    """Return the form of a child that crosses from one process to another."""
    plain = {one.name: getattr(view, one.name) for one in fields(view)}  # results are not copied
    return {**plain, "items": asdict(view.items)}


def with_its_types(view: ChildView) -> ChildView:
    """Return a child whose fields are plain JSON, as read from that form, with those it has."""
    counts = ItemCounts(**as_object(view.items))  # type: ignore[arg-type]
    phases = ArrayPhase if view.kind == ARRAY_KIND else Phase
    return replace(view, phase=phases(view.phase), items=counts)


def read_child(obj: JsonObject) -> ChildView:
    """Read an AsyncJob or an AsyncArray; raises ValueError on a phase that is not known here."""
    meta, status = child(obj, "metadata"), child(obj, "status")
    if text(obj, "kind") == ARRAY_KIND:
        return _read_array(obj)
    error = child(status, "error")
    return ChildView(
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        type=text(child(obj, "spec"), "type"),
        phase=Phase(text(status, "phase", Phase.QUEUED)),
        reason=text(status, "reason"),
        message=text(status, "message"),
        attempt=integer(status, "attempt"),
        result=status.get("result"),
        result_ref=status.get("resultRef"),
        error_type=text(error, "type"),
        error_category=text(error, "category"),
        error_message=text(error, "message"),
    )


def _read_array(obj: JsonObject) -> ChildView:
    meta, status = child(obj, "metadata"), child(obj, "status")
    done, failed = integer(status, "succeeded"), integer(status, "failed")
    return ChildView(
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        type=text(child(obj, "spec"), "type"),
        phase=ArrayPhase(text(status, "phase", ArrayPhase.PENDING)),
        reason=text(status, "reason"),
        message=text(status, "message"),
        attempt=0,
        kind=ARRAY_KIND,
        items=ItemCounts(integer(status, "total"), done, failed, text(status, "failedItems")),
    )


T = TypeVar("T")


class SyncOrAsyncFuture(Generic[T]):
    """What `await` gives in an async handler, and `.result()` in a sync one."""

    def __init__(self, future: "concurrent.futures.Future[T]") -> None:
        self._future = future

    def __await__(self) -> Generator[Any, None, T]:
        """Wait for the value; raises what went wrong, and CancelledError as `result` does."""
        with ending_as_a_stop():
            return (yield from asyncio.wrap_future(self._future).__await__())

    def result(self, timeout: float | None = None) -> T:
        """Wait for the value in a sync handler, for `timeout` seconds at most.

        Raises what went wrong, TimeoutError after `timeout`, and CancelledError if the handler is
        told to stop meanwhile, or has been.
        """
        if not self._future.done():
            refuse_in_event_loop()
        with ending_as_a_stop():
            return self._future.result(timeout)


def refuse_in_event_loop() -> None:
    """Raise RuntimeError in an async handler."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("result() would block the event loop: await it in an async handler")


def map_future(
    source: "concurrent.futures.Future[Any]", step: Any
) -> "concurrent.futures.Future[Any]":
    """Return a future of what a quick step makes of another's value; cancelling goes both ways."""
    target: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def take(_: "concurrent.futures.Future[Any]") -> None:
        if source.cancelled():
            target.cancel()
            return
        if not target.set_running_or_notify_cancel():
            return
        try:
            target.set_result(step(source.result()))
        except Exception as error:  # noqa: BLE001  # it is handed on, whatever it is
            target.set_exception(error)

    def give_up(_: "concurrent.futures.Future[Any]") -> None:
        if target.cancelled():
            source.cancel()

    source.add_done_callback(take)
    target.add_done_callback(give_up)
    return target


class ChildJobs(Protocol):
    """Submits and looks at the children of one attempt; called from the handler's thread.

    Futures are filled from any thread. They raise SubmitError,
    ChildGoneError where the child was deleted, AttemptOverError once the attempt is over.
    """

    def submit(self, manifest: ChildManifest) -> "concurrent.futures.Future[ChildRef]":
        """Create the job; the same order twice is the same job."""

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Wait until the job has finished; TimeoutError after `timeout` seconds."""

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """Look at all children of the job, those of earlier attempts included."""

    def stop(self) -> None:
        """Submit nothing more, and cancel all futures that are not filled yet."""


class NoChildJobs:
    """Stands where nobody submits."""

    def submit(self, manifest: ChildManifest) -> "concurrent.futures.Future[ChildRef]":
        """Refuse."""
        raise SubmitError(f"child jobs are not available in this runner: {manifest.name}")

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Refuse."""
        raise SubmitError(f"child jobs are not available in this runner: {child.name}, {timeout}")

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """Refuse."""
        raise SubmitError("child jobs are not available in this runner")

    async def unfinished(self) -> frozenset[str]:
        """Return the UIDs of the unfinished children: none."""
        return frozenset()

    def stop(self) -> None:
        """Do nothing."""


class ChildWaits(Protocol):
    """Waits for children of one attempt, without a slot where that may be."""

    async def children(self, refs: Sequence[ChildRef], seconds: float | None) -> Sequence[ChildEnd]:
        """Return how each has ended; TimeoutError after `seconds`, Parked if it parks the job."""

    def children_blocking(
        self, refs: Sequence[ChildRef], seconds: float | None
    ) -> Sequence[ChildEnd]:
        """Return the same in a sync handler."""


class HeldChildWaits:
    """Waits with the slot held, where nothing parks jobs."""

    def __init__(self, jobs: ChildJobs) -> None:
        self._jobs = jobs

    async def children(self, refs: Sequence[ChildRef], seconds: float | None) -> Sequence[ChildEnd]:
        """Return how each has ended."""
        futures = [asyncio.wrap_future(self._jobs.wait(ref, seconds)) for ref in refs]
        ends = await asyncio.gather(*futures, return_exceptions=True)
        with ending_as_a_stop():
            return [_end_of(end) for end in ends]

    def children_blocking(
        self, refs: Sequence[ChildRef], seconds: float | None
    ) -> Sequence[ChildEnd]:
        """Return the same in a sync handler."""
        futures = [self._jobs.wait(ref, seconds) for ref in refs]
        concurrent.futures.wait(futures)
        with ending_as_a_stop():
            return [_end_of(one.exception() or one.result()) for one in futures]


def _end_of(end: ChildView | BaseException) -> ChildEnd:
    if isinstance(end, ChildView | ChildGoneError):
        return end
    raise end
