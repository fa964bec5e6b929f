"""The children of one attempt: jobs and arrays of the same fake cluster, which run like others."""

import concurrent.futures
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from asyncjob.app.child_jobs import ChildRef, ChildView, read_child
from asyncjob.app.child_manifest import ChildManifest, called_child, with_article
from asyncjob.app.errors import AttemptOverError, SubmitConflictError, SubmitRefusedError
from asyncjob.app.files import Files
from asyncjob.errors import InvalidError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.waits import PARK_AFTER_SECONDS
from asyncjob.names import ARRAY_KIND, CONTENT_ANNOTATION, PARENT_LABEL
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.handler_messages import ClusterCall, HandlerMessages
from asyncjob.testing.manifests import read_array_manifest, read_job_manifest
from asyncjob.testing.store import FakeJobStore, JobRecord

T = TypeVar("T")


_NEVER: Final = float("inf")

TURN_SECONDS: Final = 0.5
"""How long a handler has, once children are over, before another of its waits parks the job."""


class StoredArray(Protocol):
    """An array of the fake cluster."""

    @property
    def obj(self) -> JsonObject:
        """The newest version."""


class ArrayStore(Protocol):
    """The arrays of the fake cluster."""

    @property
    def files(self) -> Files:
        """What their chunks read and write."""

    def __contains__(self, name: str) -> bool: ...

    def get(self, name: str) -> StoredArray:
        """Return an array; raises ObjectNotFoundError."""

    def create(self, metadata: JsonObject, spec: JsonObject) -> StoredArray:
        """Store a new array; raises InvalidError."""


@dataclass(frozen=True, slots=True)
class ChildWait:
    """Somebody waits for the end of a child, until a time of the fake clock."""

    ref: ChildRef
    timeout: float | None
    deadline: float | None
    future: "concurrent.futures.Future[ChildView]"


@dataclass(frozen=True, slots=True)
class SlotWait:
    """Somebody waits for what may park the job, and keeps its slot as long as a worker would.

    That is until the children have ended, or the deadline; then `decide` says what is next. Where
    that is a park (`parks`), no other wait may keep the slot for children: a park names them.
    """

    refs: Sequence[ChildRef]
    deadline: float
    decide: Callable[[], Any]
    parks: Callable[[Any], bool]
    future: "concurrent.futures.Future[Any]"


class FakeChildJobs:
    """Submits and looks at the children of one attempt; called from the handler's thread.

    What is asked is done by the cluster in its turn, as a step of its own.
    """

    def __init__(
        self,
        store: FakeJobStore,
        arrays: ArrayStore,
        clock: FakeClock,
        messages: HandlerMessages,
        parent_uid: str,
    ) -> None:
        self._store = store
        self._arrays = arrays
        self._clock = clock
        self._messages = messages
        self._parent_uid = parent_uid
        self._waits: list[ChildWait | SlotWait] = []
        self._futures: list[concurrent.futures.Future[Any]] = []
        self._parks_at = 0.0
        self._stopped = False
        self.slot_held_until: Callable[[], float | None] = lambda: None
        """When a park that cannot name its waits is looked at again; None for one that can."""

    # ---- what the handler asks

    def submit(self, manifest: ChildManifest) -> "concurrent.futures.Future[ChildRef]":
        """Create the job; the same order twice is the same job."""
        if self._stopped:  # told where it is awaited, as by a worker
            refused: concurrent.futures.Future[ChildRef] = concurrent.futures.Future()
            refused.set_exception(
                AttemptOverError(f"the attempt is over: {manifest.name} is not submitted")
            )
            return refused
        return self._call_cluster(lambda: self._submit(manifest))

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Wait until the job has finished; TimeoutError after `timeout` seconds of fake time."""
        answer = self._new_future()
        until = None if timeout is None else self._clock.elapsed + timeout
        waiting = ChildWait(child, timeout, until, answer)
        self._messages.add_call(ClusterCall(lambda: self._waits.append(waiting)))
        return answer

    def after_grace(
        self,
        refs: Sequence[ChildRef],
        decide: Callable[[], T],
        parks: Callable[[T], bool],
        *,
        held: float | None = None,
    ) -> "concurrent.futures.Future[T]":
        """Return what `decide` says once all children have finished, or hold the slot too long.

        `held` says how many seconds that is; None for as many as a worker would wait.
        """
        grace = PARK_AFTER_SECONDS if refs else 0.0
        deadline = self._clock.elapsed + (grace if held is None else held)
        waiting = SlotWait(refs, deadline, decide, parks, self._new_future())
        self._messages.add_call(ClusterCall(lambda: self._waits.append(waiting)))
        return waiting.future

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """Look at all children of the job."""
        return self._call_cluster(
            lambda: [read_child(one.obj) for one in child_records(self._store, self._parent_uid)]
        )

    def stop(self) -> None:
        """Submit nothing more, and cancel all futures that are not filled yet."""
        self._stopped = True
        self._waits.clear()
        for future in self._futures:
            future.cancel()

    # ---- what the cluster does

    @property
    def is_waiting(self) -> bool:
        """Whether the handler waits for a child, and nothing but the cluster's steps ends that."""
        return any(not one.future.done() for one in self._waits)

    @property
    def due_at(self) -> float | None:
        """When on the fake clock the first wait ends in vain."""
        now, deadlines = self._clock.elapsed, [one.deadline for one in self._waits]
        if any(isinstance(one, SlotWait) for one in self._waits):
            deadlines += [self._parks_at, self.slot_held_until()]
        return min((at for at in deadlines if at is not None and now < at < _NEVER), default=None)

    def answer_next_wait(self) -> bool:
        """Answer one wait that is over; False if there is none."""
        for one in self._waits:
            if one.future.done() or self._try_answer(one):
                self._waits.remove(one)
                return True
        return False

    def _try_answer(self, wait: ChildWait | SlotWait) -> bool:
        try:
            if isinstance(wait, ChildWait):
                self._answer_child_wait(wait)
            else:
                self._answer_slot_wait(wait)
        except Exception as error:  # noqa: BLE001  # it is the handler's, whatever it is
            wait.future.set_exception(error)
        return wait.future.done()

    def _answer_child_wait(self, wait: ChildWait) -> None:
        seen = self.look_at(wait.ref)
        if seen.finished:
            wait.future.set_result(seen)
        elif wait.deadline is not None and self._clock.elapsed >= wait.deadline:
            raise TimeoutError(f"{wait.ref.called} has not finished within {wait.timeout} s")

    def _answer_slot_wait(self, wait: SlotWait) -> None:
        now = self._clock.elapsed
        if now < wait.deadline and not self._have_finished(wait.refs):
            return
        answer = wait.decide()
        slot_waits = (one for one in self._waits if isinstance(one, SlotWait))
        unchecked = any(one.deadline > now and not one.future.done() for one in slot_waits) or any(
            isinstance(one, ChildWait) and not one.future.done() for one in self._waits
        )
        if not wait.parks(answer):
            if wait.refs:
                self._parks_at = now + TURN_SECONDS
        elif unchecked or not self._may_park(now):
            return
        wait.future.set_result(answer)

    def _may_park(self, now: float) -> bool:
        """Return whether the handler has had its turn, and a park can name what it waits for."""
        has_turn = len(self._messages) or now < self._parks_at
        return not has_turn and self.slot_held_until() is None

    def _have_finished(self, refs: Sequence[ChildRef]) -> bool:
        return all(self.look_at(ref).finished for ref in refs)

    def look_at(self, ref: ChildRef) -> ChildView:
        """Return a child as it is now."""
        stored = self._arrays if ref.kind == ARRAY_KIND else self._store
        return read_child(stored.get(ref.name).obj)

    def _call_cluster(self, act: Callable[[], T]) -> "concurrent.futures.Future[T]":
        answer = self._new_future()

        def run() -> None:
            if answer.cancelled():
                return
            try:
                answer.set_result(act())
            except Exception as error:  # noqa: BLE001  # it is the handler's, whatever it is
                answer.set_exception(error)

        self._messages.add_call(ClusterCall(run))
        return answer

    def _new_future(self) -> "concurrent.futures.Future[Any]":
        answer: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._futures.append(answer)
        return answer

    def _submit(self, manifest: ChildManifest) -> ChildRef:
        stored = self._arrays if manifest.kind == ARRAY_KIND else self._store
        if manifest.name in stored:
            obj = stored.get(manifest.name).obj
            self._check_same_child(obj, manifest)
        else:
            try:
                obj = self._create(manifest)
            except InvalidError as error:
                what = called_child(manifest.kind)
                raise SubmitRefusedError(f"{what} {manifest.name}: {error}") from error
        return ChildRef(manifest.name, text(child(obj, "metadata"), "uid"), manifest.kind)

    def _create(self, manifest: ChildManifest) -> JsonObject:
        metadata = child(manifest.manifest, "metadata")
        if manifest.kind == ARRAY_KIND:
            return self._arrays.create(metadata, read_array_manifest(manifest.manifest)).obj
        return self._store.create(metadata, read_job_manifest(manifest.manifest)).obj

    def _check_same_child(self, found: JsonObject, manifest: ChildManifest) -> None:
        meta = child(found, "metadata")
        if text(child(meta, "labels"), PARENT_LABEL) != self._parent_uid:
            raise SubmitConflictError(
                f"there is {with_article(manifest.kind)} {manifest.name} that is not a child of "
                "this one: give another name"
            )
        if text(child(meta, "annotations"), CONTENT_ANNOTATION) != manifest.fingerprint:
            what = f"name {manifest.name!r}" if manifest.key is None else f"key {manifest.key!r}"
            raise SubmitConflictError(
                f"{what} was used by this job for a child with other content ({manifest.name}): "
                "give each child a key of its own"
            )


def child_records(store: FakeJobStore, uid: str) -> Sequence[JobRecord]:
    """Return the jobs that a job has submitted, in whichever attempt."""
    return [
        record
        for record in store
        if text(child(child(record.obj, "metadata"), "labels"), PARENT_LABEL) == uid
    ]
