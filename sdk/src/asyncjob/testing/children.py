"""The child jobs of one attempt: jobs of the same fake cluster, which run there like all others."""

import concurrent.futures
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from asyncjob.app.child_errors import AttemptOverError, SubmitConflictError, SubmitRefusedError
from asyncjob.app.child_order import ChildOrder
from asyncjob.app.child_view import ChildRef, ChildView, read_child
from asyncjob.errors import InvalidError
from asyncjob.json_types import child, text
from asyncjob.names import CONTENT_ANNOTATION, PARENT_LABEL
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.manifests import read_job_manifest
from asyncjob.testing.reports import Errand, Inbox
from asyncjob.testing.store import Record, Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Waiting:
    """Somebody waits for the end of a child, until a time of the fake clock."""

    ref: ChildRef
    seconds: float | None
    until: float | None
    answer: "concurrent.futures.Future[ChildView]"


class FakeChildren:
    """Submits and looks at the children of one attempt; called from the handler's thread.

    What is asked is done by the cluster in its turn, as a step of its own.
    """

    def __init__(self, store: Store, clock: FakeClock, inbox: Inbox, parent_uid: str) -> None:
        self._store = store
        self._clock = clock
        self._inbox = inbox
        self._parent_uid = parent_uid
        self._waiting: list[Waiting] = []
        self._going: list[concurrent.futures.Future[Any]] = []
        self._over = False

    # ---- what the handler asks

    def submit(self, order: ChildOrder) -> "concurrent.futures.Future[ChildRef]":
        """Create the job; the same order twice is the same job."""
        if self._over:
            raise AttemptOverError(f"the attempt is over: {order.name} is not submitted")
        return self._ask(lambda: self._submit(order))

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Look until the job has finished; TimeoutError after so many seconds of fake time."""
        answer = self._begin()
        until = None if timeout is None else self._clock.elapsed + timeout
        waiting = Waiting(child, timeout, until, answer)
        self._inbox.ask(Errand(lambda: self._waiting.append(waiting)))
        return answer

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """Look at all children of the job."""
        return self._ask(
            lambda: [read_child(one.obj) for one in children_of(self._store, self._parent_uid)]
        )

    def stop(self) -> None:
        """Submit nothing more, and cancel all futures that are not filled yet."""
        self._over = True
        self._waiting.clear()
        for future in self._going:
            future.cancel()

    # ---- what the cluster does

    @property
    def waits(self) -> bool:
        """Whether the handler waits for a child, and nothing but the cluster's steps ends that."""
        return any(not one.answer.done() for one in self._waiting)

    @property
    def due_at(self) -> float | None:
        """When on the fake clock the first wait ends in vain."""
        return min((one.until for one in self._waiting if one.until is not None), default=None)

    def answer(self) -> bool:
        """Answer one wait that is over; False if there is none."""
        for one in self._waiting:
            if one.answer.done() or self._settle(one):
                self._waiting.remove(one)
                return True
        return False

    def _settle(self, one: Waiting) -> bool:
        seen = read_child(self._store.get(one.ref.name).obj)
        if seen.finished:
            one.answer.set_result(seen)
        elif one.until is not None and self._clock.elapsed >= one.until:
            late = f"child {one.ref.name} has not finished within {one.seconds} s"
            one.answer.set_exception(TimeoutError(late))
        else:
            return False
        return True

    def _ask(self, act: Callable[[], T]) -> "concurrent.futures.Future[T]":
        answer = self._begin()

        def run() -> None:
            if answer.cancelled():
                return
            try:
                answer.set_result(act())
            except Exception as error:  # noqa: BLE001  # it is the handler's, whatever it is
                answer.set_exception(error)

        self._inbox.ask(Errand(run))
        return answer

    def _begin(self) -> "concurrent.futures.Future[Any]":
        answer: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._going.append(answer)
        return answer

    def _submit(self, order: ChildOrder) -> ChildRef:
        if order.name in self._store:
            record = self._store.get(order.name)
            self._check_own(record, order)
        else:
            try:
                spec = read_job_manifest(order.body)
                record = self._store.create(child(order.body, "metadata"), spec)
            except InvalidError as error:
                raise SubmitRefusedError(f"child {order.name}: {error}") from error
        return ChildRef(order.name, record.view.uid)

    def _check_own(self, found: Record, order: ChildOrder) -> None:
        meta = child(found.obj, "metadata")
        if text(child(meta, "labels"), PARENT_LABEL) != self._parent_uid:
            raise SubmitConflictError(
                f"there is a job {order.name} that is no child of this one: give another name"
            )
        if text(child(meta, "annotations"), CONTENT_ANNOTATION) != order.content:
            what = f"name {order.name!r}" if order.key is None else f"key {order.key!r}"
            raise SubmitConflictError(
                f"{what} was used by this job for a child with other content ({order.name}): "
                "give each child a key of its own"
            )


def children_of(store: Store, uid: str) -> Sequence[Record]:
    """Return the jobs that a job has submitted, in whichever attempt."""
    return [
        record
        for record in store
        if text(child(child(record.obj, "metadata"), "labels"), PARENT_LABEL) == uid
    ]
