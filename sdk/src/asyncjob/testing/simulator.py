"""`Simulator`: takes the steps of a fake cluster.

One worker, the operator's part, and the clock, which moves on when all handlers only sleep.

Each step writes one version of one job, so that a test can stop between any two.
"""

import asyncio
import itertools
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from asyncjob.app.child_jobs import read_child
from asyncjob.app.context import Stop
from asyncjob.json_types import Json, child, integer
from asyncjob.lifecycle.arrays.chunks import chunk_slots, is_chunk_type
from asyncjob.lifecycle.arrays.item_results import ItemResult, ResultReader
from asyncjob.lifecycle.claim import Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.derived_jobs import rerun_name, rerun_spec
from asyncjob.lifecycle.job_view import DependencyView
from asyncjob.lifecycle.phase_change import (
    PhaseChange,
    StatusFields,
    cancel_running_job,
    crash,
    deadline_message,
    status_fields,
)
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import read_policy_layer, resolve_policy
from asyncjob.lifecycle.waits import WaitedChild
from asyncjob.names import ARRAY_KIND
from asyncjob.rest.arrays import array_of
from asyncjob.rest.item_states import run_items
from asyncjob.testing.arrays.array_operator import FakeArrayOperator
from asyncjob.testing.arrays.array_store import ArrayRecord, FakeArrayStore
from asyncjob.testing.attempt import FakeAttempt, FakeAttemptServices
from asyncjob.testing.child_jobs import child_records
from asyncjob.testing.dependencies import DependencyEnd, end_of_array, end_of_job
from asyncjob.testing.errors import StuckError, TestKitError
from asyncjob.testing.fake_operator import DecisionInput, RunAgain, WaitUntil, decide
from asyncjob.testing.handler_messages import ClusterCall
from asyncjob.testing.store import JobRecord, QueueStore, can_be_claimed

_LOOP_TURNS: Final = 20
"""Turns of the event loop in which a handler that need not wait for anything gets on."""


class RunningAttempts:
    """Attempts by the UID of their job. `stall_seconds` is in real seconds."""

    def __init__(self, stall_seconds: float) -> None:
        self._stall_seconds = stall_seconds
        self._attempts: dict[str, FakeAttempt] = {}
        self._hung: set[FakeAttempt] = set()
        self._woken = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __iter__(self) -> Iterator[FakeAttempt]:
        return iter(list(self._attempts.values()))

    def __len__(self) -> int:
        return len(self._attempts)

    def get(self, uid: str) -> FakeAttempt | None:
        """Return the attempt at a job, if one is under way."""
        return self._attempts.get(uid)

    def add(self, attempt: FakeAttempt) -> None:
        """Take note of an attempt that begins."""
        self._attempts[attempt.job.uid] = attempt

    def remove(self, attempt: FakeAttempt) -> None:
        """Take note that one has ended."""
        del self._attempts[attempt.job.uid]

    def wake(self) -> None:
        """Record that a handler has done something; called from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    async def run_handlers(self, *, lenient: bool) -> bool:
        """Let handlers work until one has something to tell; False once all of them only sleep.

        Raises StuckError, unless lenient, where one does neither for too long.
        """
        while self._attempts:
            self._woken.clear()
            for attempt in self:
                attempt.resume()
            await _run_loop_turns()
            if any(attempt.has_event for attempt in self):
                return True
            busy = self._busy()
            if not busy:
                return False
            if not await self._wait():
                self._mark_hung(busy, lenient=lenient)
        return False

    def _busy(self) -> set[FakeAttempt]:
        """Return who neither sleeps nor is known to hang."""
        awake = {attempt for attempt in self if not attempt.is_sleeping}
        self._hung &= awake
        return awake - self._hung

    async def _wait(self) -> bool:
        try:
            async with asyncio.timeout(self._stall_seconds):
                await self._woken.wait()
        except TimeoutError:
            return False
        return True

    def _mark_hung(self, busy: set[FakeAttempt], *, lenient: bool) -> None:
        """Let time pass for handlers that hang, if lenient, and that ignore their stop."""
        stuck = sorted(attempt.job.name for attempt in busy if attempt.stopped is None)
        if stuck and not lenient:
            raise StuckError(
                f"the handlers of {', '.join(stuck)} have neither ended nor slept for "
                f"{self._stall_seconds} real seconds: let what they wait for happen, or let time "
                "pass "
                "with advance(seconds)"
            )
        self._hung |= busy


async def _run_loop_turns() -> None:
    for _ in range(_LOOP_TURNS):
        await asyncio.sleep(0)


POD_NAME: Final = "fake-worker"
"""Name of the one worker's pod."""

_POD_UID: Final = "00000000-0000-4000-8000-000000000000"
_KILLED_MESSAGE: Final = f"the container of pod {POD_NAME} ended: exit code 137, Error"


class Simulator:
    """Takes the steps that are due. `concurrency` is how many handlers run at a time."""

    def __init__(
        self,
        services: FakeAttemptServices,
        queues: QueueStore,
        arrays: FakeArrayStore,
        running: RunningAttempts,
        concurrency: int,
    ) -> None:
        self._services = services
        self._clock = services.clock
        self._store = services.store
        self._queues = queues
        self._arrays = arrays
        self._array_operator = FakeArrayOperator(
            arrays, services.store, services.clock, self.change_spec, self._find
        )
        self._running = running
        self._concurrency = concurrency
        self._processes = itertools.count(1)
        self._process = next(self._processes)
        self._claims = itertools.count(1)
        self._ended: list[FakeAttempt] = []

    def step(self) -> bool:
        """Take one step that is due now; False if there is none."""
        return any(
            take()
            for take in (
                self._answer_child_wait,
                self._store_report,
                self._finish,
                self._time_out,
                self._claim,
                self._apply_operator_decision,
                self._array_operator.step,
            )
        )

    def due_at(self) -> float | None:
        """Return when on the fake clock time alone brings the next step or wakes a handler."""
        waits = (self._decide(record) for record in self._store)
        times = [wait.until for wait in waits if isinstance(wait, WaitUntil)]
        times += [attempt.due_at for attempt in self._running]
        more = (self._clock.next_timer(), self._array_operator.due_at())
        return min([*times, *(at for at in more if at is not None)], default=None)

    @property
    def now(self) -> str:
        """The time of the fake clock, as it is stored."""
        return self._clock.text

    def is_past_deadline(self, record: JobRecord) -> bool:
        """Return whether the job's deadline has passed on the fake clock."""
        return self._decision_input(record).is_past_deadline

    def change_spec(self, record: JobRecord, fields: Mapping[str, Json]) -> None:
        """Change control fields as a user does; a handler to be cancelled is stopped."""
        self._store.change_spec(record, {**record.spec, **fields})
        attempt = self._running.get(record.view.uid)
        if attempt and record.view.control.cancel:
            attempt.stop(Stop.CANCELLED)

    def change_array(self, record: ArrayRecord, fields: Mapping[str, Json]) -> None:
        """Change control fields of an array as a user does."""
        self._arrays.change_spec(record, {**child(record.obj, "spec"), **fields})

    def chunks_of(self, record: ArrayRecord) -> Sequence[JobRecord]:
        """Return the jobs that run the items of an array, as far as they exist."""
        return list(self._array_operator.chunks_of(record).values())

    def results_of(self, record: ArrayRecord) -> Sequence[ItemResult]:
        """Return what the items of an array have returned, as far as they are done."""
        array = array_of(record.obj, detailed=True)
        if array.results is None:
            return ()
        return [*ResultReader(self._arrays.files.results(array.results), run_items(array))]

    def create_rerun(self, record: JobRecord, number: int) -> JobRecord:
        """Create the rerun and acknowledge the request; returns the job of its name."""
        name = rerun_name(record.view.name, number)
        if name not in self._store:
            spec = rerun_spec(record.spec, name=record.view.name, uid=record.view.uid)
            self._store.create({"name": name}, spec)
        self._store.change_status(record, {"reruns": number})
        return self._store.get(name)

    def children_of(self, record: JobRecord) -> Sequence[JobRecord]:
        """Return the jobs that the job has submitted."""
        return child_records(self._store, record.view.uid)

    def attempt_of(self, record: JobRecord) -> FakeAttempt:
        """Return the attempt under way; raises TestKitError if the job is not running."""
        attempt = self._running.get(record.view.uid)
        if attempt is None:
            raise TestKitError(
                f"{record.view.name} is {record.view.phase}: only a running job has a worker; "
                "wait for it with run_until"
            )
        return attempt

    async def crash(self, record: JobRecord) -> None:
        """Let the job's worker die: the operator takes the job through the retry flow."""
        attempt, job, now = self.attempt_of(record), record.view, self._clock.text
        self._running.remove(attempt)
        self._ended.append(attempt)
        self._process = next(self._processes)
        await attempt.abandon(0.0)
        if job.control.cancel:
            move = cancel_running_job(job, f"cancelled by spec.cancel; {_KILLED_MESSAGE}", now=now)
        elif self.is_past_deadline(record):
            message = f"{deadline_message(job)}; {_KILLED_MESSAGE}"
            move = cancel_running_job(job, message, now=now, reason=Reason.DEADLINE_EXCEEDED)
        else:
            draw = self._services.draw
            move = crash(job, Reason.WORKER_CRASHED, _KILLED_MESSAGE, now=now, jitter_sample=draw)
        self._store_change(record, move)

    async def close(self, wait_seconds: float) -> None:
        """Let go of all handlers, those that were given up on included."""
        self._clock.close()
        for attempt in (*self._running, *self._ended):
            await attempt.abandon(wait_seconds)

    # ---- the worker

    def _answer_child_wait(self) -> bool:
        return any(attempt.children.answer_next_wait() for attempt in self._running)

    def _store_report(self) -> bool:
        attempt = next((one for one in self._running if len(one.messages)), None)
        if attempt is None:
            return False
        report = attempt.take_message()
        if isinstance(report, ClusterCall):
            report.run()
            return True
        record = self._store.get(attempt.job.name)
        self._store.change_status(
            record, {report.status_field: report.value, "lastUpdateTime": self._clock.text}
        )
        return True

    def _finish(self) -> bool:
        attempt = next((one for one in self._running if one.ended), None)
        if attempt is None:
            return False
        self._running.remove(attempt)
        self._ended.append(attempt)
        move = attempt.outcome()
        if move is not None:
            self._store_change(self._store.get(attempt.job.name), move)
        return True

    def _time_out(self) -> bool:
        return any(attempt.check_timeout() for attempt in self._running)

    def _claim(self) -> bool:
        if len(self._running) >= self._concurrency:
            return False
        chunks = sum(is_chunk_type(attempt.job.type) for attempt in self._running)
        types: AbstractSet[str] = self._services.app.handlers.keys()
        if chunks >= chunk_slots(self._concurrency):
            types = {type_ for type_ in types if not is_chunk_type(type_)}
        waiting = [
            record
            for record in self._store
            if record.view.type in types and can_be_claimed(record.view)
        ]
        if not waiting:
            return False
        record = max(waiting, key=lambda one: integer(one.spec, "priority"))
        self._store.change_status(record, self._claim_fields(record))
        attempt = FakeAttempt(
            self._services, record.obj, self._queues.cancel_grace(record.view.queue)
        )
        self._running.add(attempt)
        attempt.start()
        return True

    def _claim_fields(self, record: JobRecord) -> StatusFields:
        job = record.view
        handler = self._services.app.handlers[job.type]
        layers = (
            read_policy_layer(record.spec),
            self._queues.policy_layer(job.queue),
            handler.policy,
        )
        candidate = Candidate(job.name, job.resource_version, job.type, attempt=job.attempt)
        holder = LeaseHolder(POD_NAME, _POD_UID, f"{POD_NAME}/{self._process}")
        token, now = f"claim-{next(self._claims)}", self._clock.text
        body = claim_patch(candidate, holder, resolve_policy(*layers), claim_id=token, now=now)
        return dict(child(body, "status"))

    # ---- the operator

    def _apply_operator_decision(self) -> bool:
        for record in self._store:
            effect = self._decide(record)
            if effect is None or isinstance(effect, WaitUntil):
                continue
            if isinstance(effect, RunAgain):
                self.create_rerun(record, effect.number)
            else:
                self._store.change_status(record, effect)
            return True
        return False

    def _decide(self, record: JobRecord) -> StatusFields | RunAgain | WaitUntil | None:
        return decide(self._decision_input(record))

    def _decision_input(self, record: JobRecord) -> DecisionInput:
        timeout = self._queues.queue_timeout(record.view.queue)
        return DecisionInput(record, self._clock, timeout, self._is_over, self._find)

    def _find(self, dependency: DependencyView) -> DependencyEnd | None:
        """Return how far a job, with its children if asked for, or an array is."""
        if dependency.kind == ARRAY_KIND:
            if dependency.name not in self._arrays:
                return None
            return end_of_array(self._arrays.get(dependency.name).view)
        if dependency.name not in self._store:
            return None
        record = self._store.get(dependency.name)
        children = self.children_of(record) if dependency.children else ()
        ends = [end_of_job(one.view) for one in (record, *children)]
        failure = next((end.failure for end in ends if end.failure), "")
        return DependencyEnd(all(end.finished for end in ends), failure)

    def _is_over(self, awaited: WaitedChild) -> bool:
        stored = self._arrays if awaited.kind == ARRAY_KIND else self._store
        if awaited.name not in stored:
            return True
        seen = read_child(stored.get(awaited.name).obj)
        return seen.uid != awaited.uid or seen.finished

    def _store_change(self, record: JobRecord, change: PhaseChange) -> None:
        self._store.change_status(record, status_fields(change, record.status))
