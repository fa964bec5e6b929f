"""Child jobs as their parent's handler sees them.

`ChildView`, `Child` and `ChildSubmission`, and the protocol `ChildJobs` of what submits them: a
worker, a test, the parent of a handler process.
"""

import asyncio
import concurrent.futures
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from asyncjob.app.child_manifest import ChildManifest
from asyncjob.app.errors import AttemptOverError, ChildFailedError, SubmitError
from asyncjob.json_types import Json, JsonObject, child, integer, text
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase


@dataclass(frozen=True, slots=True)
class ChildRef:
    """Which job a child is."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ChildView:
    """A child job as it was when it was looked at. `error_…` are empty without an error.

    `result_ref` is as in its status, where the result is kept elsewhere.
    """

    name: str
    uid: str
    type: str
    phase: Phase
    reason: str
    message: str
    attempt: int
    result: Json = None
    result_ref: Json = None
    error_type: str = ""
    error_category: str = ""
    error_message: str = ""

    @property
    def finished(self) -> bool:
        """Whether nothing happens to it without a person."""
        return self.phase in FINISHED_PHASES

    @property
    def succeeded(self) -> bool:
        """Whether it has succeeded."""
        return self.phase is Phase.SUCCEEDED

    def check(self) -> "ChildView":
        """Return itself; raises ChildFailedError unless it has succeeded."""
        if not self.succeeded:
            why = f"{self.reason}: {self.message}".strip(": ")
            raise ChildFailedError(f"child {self.name} ended as {self.phase.value} ({why})")
        return self


def read_child(obj: JsonObject) -> ChildView:
    """Read an AsyncJob; raises ValueError on a phase this version does not know."""
    meta, status = child(obj, "metadata"), child(obj, "status")
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


T = TypeVar("T")


class SyncOrAsyncFuture(Generic[T]):
    """What `await` gives in an async handler, and `.result()` in a sync one."""

    def __init__(self, future: "concurrent.futures.Future[T]") -> None:
        self._future = future

    def __await__(self) -> Generator[Any, None, T]:
        """Wait for the value; raises what went wrong."""
        return asyncio.wrap_future(self._future).__await__()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the value in a sync handler, for `timeout` seconds at most.

        Raises what went wrong, TimeoutError after `timeout`, and AttemptOverError if the handler is
        told to stop meanwhile.
        """
        if not self._future.done():
            _refuse_in_event_loop()
        try:
            return self._future.result(timeout)
        except concurrent.futures.CancelledError as error:
            raise AttemptOverError from error


def _refuse_in_event_loop() -> None:
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

    def stop(self) -> None:
        """Do nothing."""


__all__ = ["Child", "ChildJobs", "ChildRef", "ChildSubmission", "ChildView"]


class Child:
    """A child job that the API server has taken."""

    def __init__(self, ref: ChildRef, jobs: ChildJobs) -> None:
        self._ref = ref
        self._jobs = jobs

    @property
    def name(self) -> str:
        """Name of the job."""
        return self._ref.name

    @property
    def uid(self) -> str:
        """UID of the job."""
        return self._ref.uid

    def wait(
        self, timeout: float | None = None, *, check: bool = False
    ) -> SyncOrAsyncFuture[ChildView]:
        """Wait until it has finished, however; TimeoutError after `timeout` seconds.

        With `check`, ChildFailedError unless it has succeeded. Raises ChildGoneError if it was
        deleted. The parent keeps its slot meanwhile: children in the same queue need others.
        """
        seen = self._jobs.wait(self._ref, timeout)
        return SyncOrAsyncFuture(map_future(seen, ChildView.check) if check else seen)


class ChildSubmission(SyncOrAsyncFuture[Child]):
    """A child job on its way: it is sent at once, whether anyone waits for it or not.

    `await submission` gives the Child in an async handler, `submission.result()` in a sync one;
    both raise SubmitError. A handler's success is reported only after all of them are stored.
    """

    def __init__(self, name: str, future: "concurrent.futures.Future[Child]") -> None:
        super().__init__(future)
        self._name = name
        self._retrieved = False

    @property
    def name(self) -> str:
        """Name of the child, known at once."""
        return self._name

    @property
    def retrieved(self) -> bool:
        """Whether somebody knows what became of it."""
        return self._retrieved

    def __await__(self) -> Generator[Any, None, Child]:
        """Wait until it is stored; a caller that gives up waiting does not call it back."""
        try:
            child = yield from asyncio.shield(asyncio.wrap_future(self._future)).__await__()
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._retrieved = True
            raise
        self._retrieved = True
        return child

    def result(self, timeout: float | None = None) -> Child:
        """Wait in a sync handler until it is stored."""
        try:
            return super().result(timeout)
        finally:
            self._retrieved = self._retrieved or self._future.done()

    async def wait_stored(self) -> None:
        """Wait until it is stored; AttemptOverError if it was called back."""
        future = asyncio.wrap_future(self._future)
        await asyncio.wait({future})
        if future.cancelled():
            raise AttemptOverError
        future.result()
