"""The steps of one attempt: kept in the job of the fake cluster, within the limits of a real one.

There is no object store: a result that a worker would offload is refused, as by a worker without
one.
"""

import concurrent.futures
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from asyncjob.app.child_jobs import ChildRef, map_future
from asyncjob.app.child_waits import ChildrenAnswer
from asyncjob.app.errors import AttemptOverError, StepError, StepRefusedError
from asyncjob.app.outcomes import OFFLOAD_HINT
from asyncjob.app.waits import SignalAnswer
from asyncjob.free_json import normalize, size_of
from asyncjob.json_types import Json, JsonObject, as_object, flag, text
from asyncjob.lifecycle.signals import readable_signals, signals_of
from asyncjob.lifecycle.step_records import (
    inline_bytes,
    step_record,
    steps_of,
    why_no_room,
    why_not_inline,
)
from asyncjob.lifecycle.timestamps import add_seconds, parse_timestamp
from asyncjob.lifecycle.waits import (
    PARK_AFTER_SECONDS,
    WaitedChild,
    WaitKind,
    can_be_named,
    children_wait,
    open_wait,
    signal_wait,
    wait_record,
    waits_of,
)
from asyncjob.testing.child_jobs import FakeChildJobs
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.handler_messages import ClusterCall, HandlerMessages
from asyncjob.testing.store import FakeJobStore

T = TypeVar("T")


def given_steps(results: Mapping[str, object], now: str) -> dict[str, Json]:
    """Return the records of steps that are done already, with these results."""
    values = {
        key: normalize(value, what=f"the result of step {key!r}") for key, value in results.items()
    }
    return {
        key: step_record(attempt=0, started=now, now=now, size=size_of(value), result=value)
        for key, value in values.items()
    }


class FakeSteps:
    """Keeps the results of one attempt's steps; called from the handler's thread.

    What is asked is done by the cluster in its turn, as a step of its own: a test can stop the
    handler there.
    """

    def __init__(
        self,
        store: FakeJobStore,
        clock: FakeClock,
        messages: HandlerMessages,
        name: str,
        attempt: int,
        *,
        children: FakeChildJobs,
    ) -> None:
        self._store = store
        self._clock = clock
        self._messages = messages
        self._name = name
        self._attempt = attempt
        self._child_jobs = children
        children.slot_held_until = self._slot_held_until
        self.skips_waits = False
        self._skipping = 0
        self._skipping_since = 0.0
        self._skipped = 0.0
        self._skip_lock = threading.Lock()
        self._started: dict[str, str] = {}
        self._futures: list[concurrent.futures.Future[Any]] = []
        self._closed = False
        self.waits: dict[str, Json] = dict(waits_of(store.get(name).status))
        self.open_waits: dict[str, JsonObject] = {}

    def begin(self, key: str) -> "concurrent.futures.Future[None]":
        """Check that the step may be taken and that the job has room for it."""
        return self._call_cluster(key, lambda: self._begin(key))

    def store(self, key: str, value: Json) -> "concurrent.futures.Future[None]":
        """Keep the result of a step that has been begun."""
        return self._call_cluster(key, lambda: self._keep(key, value))

    def load(self, key: str) -> "concurrent.futures.Future[Json]":
        """Refuse: nothing is offloaded here."""
        raise StepError(f"the kept result of step {key!r} is in a store, and there is none here")

    def sleep(self, key: str, seconds: float) -> "concurrent.futures.Future[float]":
        """Return 0 once the sleep is over; if it is longer than a slot is held, what is left."""
        left, begun = self._seconds_left(key, seconds), key in self.waits
        is_short = not begun and seconds <= PARK_AFTER_SECONDS
        return self._wait(
            key,
            (),
            lambda: self._sleep(key, seconds, is_kept=not is_short),
            lambda left: left > 0,
            left=left,
        )

    def signal(
        self, name: str, seconds: float | None, payload_schema: JsonObject | None
    ) -> "concurrent.futures.Future[JsonObject]":
        """Return what has become of the wait for a signal; if nothing, the job is to park."""

        def decide() -> SignalAnswer:
            answer = self._signal(name, seconds)
            if not answer.is_over:
                self.open_waits[name] = signal_wait(self.open_waits[name], payload_schema)
            return answer

        left = None if seconds is None else self._seconds_left(name, seconds)
        answer = self._wait(name, (), decide, _is_open, left=left)
        return map_future(answer, SignalAnswer.to_json)

    def children(
        self, key: str, children: Sequence[ChildRef], seconds: float | None
    ) -> "concurrent.futures.Future[JsonObject]":
        """Return how the children have ended; if not all have, the job is to park."""
        begun = self._clock.text
        is_late = flag(as_object(self.waits.get(key)), "over")
        answer = self._wait(
            key,
            () if is_late else children,
            lambda: self._children(key, children, seconds, begun),
            _is_open,
        )
        return map_future(answer, ChildrenAnswer.to_json)

    def give_up(self, key: str) -> "concurrent.futures.Future[None]":
        """Take a wait out of what the job may be parked for."""
        return self._call_cluster(key, lambda: self._give_up(key))

    def _give_up(self, key: str) -> None:
        self.open_waits.pop(key, None)

    def _wait(
        self,
        key: str,
        children: Sequence[ChildRef],
        decide: Callable[[], T],
        parks: Callable[[T], bool],
        *,
        left: float | None = None,
    ) -> "concurrent.futures.Future[T]":
        """Wait; one that is over in `left` seconds holds its slot if that is soon, or skipped."""
        if self._closed:
            raise AttemptOverError(f"the attempt is over: {key!r} is not waited for")
        skips = self.skips_waits and left is not None
        held = left if skips or (left is not None and left <= PARK_AFTER_SECONDS) else None
        if skips:
            self._begin_skip()  # the cluster moves its clock as soon as it knows of the wait
        answer = self._child_jobs.after_grace(children, decide, parks, held=held)
        self._futures.append(answer)
        if skips:
            answer.add_done_callback(lambda _: self._end_skip())
        return answer

    @property
    def is_skipping(self) -> bool:
        """Whether the handler waits for what is skipped: its time limit does not count that."""
        return bool(self._skipping)

    @property
    def skipped_seconds(self) -> float:
        """How much time has been skipped so far."""
        now = self._clock.elapsed - self._skipping_since if self._skipping else 0.0
        return self._skipped + now

    def _begin_skip(self) -> None:
        with self._skip_lock:
            if not self._skipping:
                self._skipping_since = self._clock.elapsed
            self._skipping += 1

    def _end_skip(self) -> None:
        with self._skip_lock:
            self._skipping -= 1
            if not self._skipping:
                self._skipped += self._clock.elapsed - self._skipping_since

    def _seconds_left(self, key: str, seconds: float) -> float:
        until = text(as_object(self.waits.get(key)), "until")
        if not until:
            return seconds
        return (parse_timestamp(until) - self._clock.now).total_seconds()

    def _slot_held_until(self) -> float | None:
        """Return when a slot is looked at again that a park could not give back; None if it can."""
        if can_be_named(self.open_waits):
            return None
        ends = [text(record, "until") for record in self.open_waits.values()]
        return min(
            (self._clock.elapsed_at(parse_timestamp(end)) for end in ends if end),
            default=float("inf"),
        )

    def close(self) -> None:
        """Keep nothing more: the attempt is over."""
        self._closed = True
        for future in self._futures:
            future.cancel()

    def _sleep(self, key: str, seconds: float, *, is_kept: bool) -> float:
        known = as_object(self.waits.get(key))
        until = text(known, "until") or add_seconds(self._clock.text, seconds)
        left = (parse_timestamp(until) - self._clock.now).total_seconds()
        if flag(known, "over") or left <= 0:
            self.open_waits.pop(key, None)
            if not is_kept:
                self.waits.pop(key, None)
            return 0.0
        self.waits[key] = self.open_waits[key] = wait_record(WaitKind.SLEEP, until)
        return left

    def _signal(self, name: str, seconds: float | None) -> SignalAnswer:
        known = as_object(self.waits.get(name))
        found = readable_signals(signals_of(self._store.get(self._name).spec)).get(name)
        self.open_waits.pop(name, None)
        if found is not None:
            return SignalAnswer(as_object(found))
        if flag(known, "over"):
            return SignalAnswer(timed_out=True)
        if seconds is None:
            self.open_waits[name] = open_wait(WaitKind.SIGNAL)
            return SignalAnswer()
        until = text(known, "until") or add_seconds(self._clock.text, seconds)
        record = wait_record(WaitKind.SIGNAL, until)
        left = (parse_timestamp(until) - self._clock.now).total_seconds()
        if left <= 0:
            self._time_out(name, record)
            return SignalAnswer(timed_out=True)
        self.waits[name] = self.open_waits[name] = record
        return SignalAnswer(left=left)

    def _children(
        self, key: str, refs: Sequence[ChildRef], seconds: float | None, begun: str
    ) -> ChildrenAnswer:
        known = as_object(self.waits.get(key))
        self.open_waits.pop(key, None)
        if flag(known, "over"):
            return ChildrenAnswer(timed_out=True)
        views = [self._child_jobs.look_at(ref) for ref in refs]
        unfinished = [
            WaitedChild(ref.name, ref.uid, ref.kind)
            for ref, view in zip(refs, views, strict=True)
            if not view.finished
        ]
        if not unfinished:
            return ChildrenAnswer(views)
        record, left = open_wait(WaitKind.CHILDREN), None
        if seconds is not None:
            until = text(known, "until") or add_seconds(begun, seconds)
            record = wait_record(WaitKind.CHILDREN, until)
            left = (parse_timestamp(until) - self._clock.now).total_seconds()
            if left <= 0:
                self._time_out(key, record)
                return ChildrenAnswer(timed_out=True)
            self.waits[key] = record
        self.open_waits[key] = children_wait(record, unfinished)
        return ChildrenAnswer(left=left)

    def _time_out(self, name: str, record: JsonObject) -> None:
        """Mark a wait as over in vain, which a park's end would have done."""
        self.waits[name] = {**record, "over": True}
        job = self._store.get(self._name)
        waits: dict[str, Json] = {**waits_of(job.status), name: self.waits[name]}
        self._store.change_status(job, {"waits": waits, "lastUpdateTime": self._clock.text})

    def _begin(self, key: str) -> None:
        if why := why_no_room(key, self._job_bytes()):
            raise StepRefusedError(why)
        self._started[key] = self._clock.text

    def _keep(self, key: str, value: Json) -> None:
        record, size = self._store.get(self._name), size_of(value)
        kept = steps_of(record.status)
        why = why_not_inline(key, size, inline=inline_bytes(kept), job_bytes=self._job_bytes())
        if why:
            raise StepRefusedError(why + OFFLOAD_HINT)
        added = step_record(
            attempt=self._attempt,
            started=self._started.pop(key),
            now=self._clock.text,
            size=size,
            result=value,
        )
        fields: dict[str, Json] = {"steps": {**kept, key: added}}
        self._store.change_status(record, {**fields, "lastUpdateTime": self._clock.text})

    def _job_bytes(self) -> int:
        whole: JsonObject = self._store.get(self._name).obj
        return size_of(whole)

    def _call_cluster(self, key: str, act: Callable[[], T]) -> "concurrent.futures.Future[T]":
        if self._closed:
            raise AttemptOverError(f"the attempt is over: step {key!r} is not taken")
        answer: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._futures.append(answer)

        def run() -> None:
            if answer.cancelled():
                return
            try:
                answer.set_result(act())
            except Exception as error:  # noqa: BLE001  # it is the handler's, whatever it is
                answer.set_exception(error)

        self._messages.add_call(ClusterCall(run))
        return answer


def _is_open(answer: ChildrenAnswer | SignalAnswer) -> bool:
    return not answer.is_over
