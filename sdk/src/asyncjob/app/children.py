"""Child jobs as their parent's handler sees them, and the seam to whoever submits them."""

import asyncio
import concurrent.futures
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from asyncjob.app.child_errors import AttemptOverError, ChildFailedError, SubmitError
from asyncjob.app.child_order import ChildOrder
from asyncjob.app.eventual import Eventual
from asyncjob.json_types import Json, JsonObject, child, integer, text
from asyncjob.lifecycle.phases import FINISHED, Phase


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
        return self.phase in FINISHED

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


class ChildJobs(Protocol):
    """Submits and looks at the children of one attempt; called from the handler's thread.

    Futures are filled from any thread. They raise the errors of `child_errors`.
    """

    def submit(self, order: ChildOrder) -> "concurrent.futures.Future[ChildRef]":
        """Create the job; the same order twice is the same job."""

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Look until the job has finished; TimeoutError after so many seconds."""

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """Look at all children of the job, those of earlier attempts included."""

    def stop(self) -> None:
        """Submit nothing more, and cancel all futures that are not filled yet."""


class NoChildJobs:
    """Stands where nobody submits."""

    def submit(self, order: ChildOrder) -> "concurrent.futures.Future[ChildRef]":
        """Refuse."""
        raise SubmitError(f"whoever runs this handler submits no jobs: {order.name}")

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Refuse."""
        raise SubmitError(f"whoever runs this handler looks at no jobs: {child.name}, {timeout}")

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """Refuse."""
        raise SubmitError("whoever runs this handler looks at no jobs")

    def stop(self) -> None:
        """Do nothing."""


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

    def wait(self, timeout: float | None = None, *, check: bool = False) -> Eventual[ChildView]:
        """Wait until it has finished, however; TimeoutError after `timeout` seconds.

        With `check`, ChildFailedError unless it has succeeded. Raises ChildGoneError if it was
        deleted. The parent keeps its slot meanwhile: children in the same queue need others.
        """
        seen = self._jobs.wait(self._ref, timeout)
        return Eventual(then(seen, ChildView.check) if check else seen)


class Submission(Eventual[Child]):
    """A child job on its way: it is sent at once, whether anyone waits for it or not.

    `await submission` gives the Child in an async handler, `submission.result()` in a sync one;
    both raise SubmitError. A handler's success is reported only after all of them are stored.
    """

    def __init__(self, name: str, future: "concurrent.futures.Future[Child]") -> None:
        super().__init__(future)
        self._name = name
        self._seen = False

    @property
    def name(self) -> str:
        """Name of the child, known at once."""
        return self._name

    @property
    def seen(self) -> bool:
        """Whether somebody knows what became of it."""
        return self._seen

    def __await__(self) -> Generator[Any, None, Child]:
        """Wait until it is stored; whoever gives up waiting does not call it back."""
        try:
            child = yield from asyncio.shield(asyncio.wrap_future(self._future)).__await__()
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._seen = True
            raise
        self._seen = True
        return child

    def result(self, timeout: float | None = None) -> Child:
        """Wait in a sync handler until it is stored."""
        try:
            return super().result(timeout)
        finally:
            self._seen = self._seen or self._future.done()

    async def settle(self) -> None:
        """Wait until it is stored; AttemptOverError if it was called back."""
        future = asyncio.wrap_future(self._future)
        await asyncio.wait({future})
        if future.cancelled():
            raise AttemptOverError
        future.result()


def then(source: "concurrent.futures.Future[Any]", step: Any) -> "concurrent.futures.Future[Any]":
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
