"""What moves the jobs of a fake cluster: one worker, the operator's part, and the clock.

Each step writes one version of one job, so that a test can stop between any two.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

from asyncjob.app.stop import Stop
from asyncjob.json_types import Json, child, integer
from asyncjob.lifecycle.claim import Candidate, Holder, claim_body
from asyncjob.lifecycle.derived_names import rerun_name
from asyncjob.lifecycle.move import Fields, Move, render
from asyncjob.lifecycle.outcome import cancelled, crash
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import layer_of, resolve
from asyncjob.lifecycle.rerun import rerun_spec
from asyncjob.lifecycle.view import JobView
from asyncjob.testing.attempt import Attempt
from asyncjob.testing.bench import Bench
from asyncjob.testing.children import children_of
from asyncjob.testing.crew import Crew
from asyncjob.testing.errors import TestKitError
from asyncjob.testing.queues import Queues
from asyncjob.testing.reports import Errand
from asyncjob.testing.store import Record, may_be_claimed
from asyncjob.testing.upkeep import Case, Rerun, Wait, decide

POD: Final = "fake-worker"
"""Name of the one worker's pod."""

_POD_UID: Final = "00000000-0000-4000-8000-000000000000"
_KILLED: Final = f"the container of pod {POD} ended: exit code 137, Error"


class Engine:
    """Takes the steps that are due. `concurrency` is how many handlers run at a time."""

    def __init__(self, bench: Bench, queues: Queues, crew: Crew, concurrency: int) -> None:
        self._bench = bench
        self._clock = bench.clock
        self._store = bench.store
        self._queues = queues
        self._crew = crew
        self._concurrency = concurrency
        self._processes = itertools.count(1)
        self._process = next(self._processes)
        self._claims = itertools.count(1)
        self._left: list[Attempt] = []

    def step(self) -> bool:
        """Take one step that is due now; False if there is none."""
        return any(
            take()
            for take in (
                self._answer,
                self._report,
                self._finish,
                self._time_out,
                self._claim,
                self._operate,
            )
        )

    def due_at(self) -> float | None:
        """Return when on the fake clock time alone brings the next step or wakes a handler."""
        waits = (self._decide(record) for record in self._store)
        times = [wait.until for wait in waits if isinstance(wait, Wait)]
        times += [attempt.due_at for attempt in self._crew]
        timer = self._clock.next_timer()
        return min(times if timer is None else [*times, timer], default=None)

    def change(self, record: Record, wishes: Mapping[str, Json]) -> None:
        """Store a user's wishes; a handler that is to be cancelled is told."""
        self._store.change_spec(record, {**record.spec, **wishes})
        attempt = self._crew.of(record.view.uid)
        if attempt and record.view.wishes.cancel:
            attempt.stop(Stop.CANCELLED)

    def rerun(self, record: Record, number: int) -> Record:
        """Create the rerun and acknowledge the wish; returns the job of its name."""
        name = rerun_name(record.view.name, number)
        if name not in self._store:
            spec = rerun_spec(record.spec, name=record.view.name, uid=record.view.uid)
            self._store.create({"name": name}, spec)
        self._store.change_status(record, {"reruns": number})
        return self._store.get(name)

    def children_of(self, record: Record) -> Sequence[Record]:
        """Return the jobs that the job has submitted."""
        return children_of(self._store, record.view.uid)

    def attempt_of(self, record: Record) -> Attempt:
        """Return the attempt under way; raises TestKitError if the job is not running."""
        attempt = self._crew.of(record.view.uid)
        if attempt is None:
            raise TestKitError(
                f"{record.view.name} is {record.view.phase}: only a running job has a worker; "
                "wait for it with run_until"
            )
        return attempt

    async def crash(self, record: Record) -> None:
        """Let the job's worker die: the operator takes the job through the retry flow."""
        attempt, job, now = self.attempt_of(record), record.view, self._clock.text
        self._crew.remove(attempt)
        self._left.append(attempt)
        self._process = next(self._processes)
        await attempt.leave(0.0)
        if job.wishes.cancel:
            move = cancelled(job, f"cancelled by spec.cancel; {_KILLED}", now=now)
        else:
            draw = self._bench.draw
            move = crash(job, Reason.WORKER_CRASHED, _KILLED, now=now, draw=draw)
        self._move(record, move)

    async def close(self, patience: float) -> None:
        """Let go of all handlers, those that were given up on included."""
        self._clock.close()
        for attempt in (*self._crew, *self._left):
            await attempt.leave(patience)

    # ---- the worker

    def _answer(self) -> bool:
        return any(attempt.children.answer() for attempt in self._crew)

    def _report(self) -> bool:
        attempt = next((one for one in self._crew if len(one.inbox)), None)
        if attempt is None:
            return False
        report = attempt.take()
        if isinstance(report, Errand):
            report.run()
            return True
        record = self._store.get(attempt.job.name)
        self._store.change_status(
            record, {report.name: report.value, "lastUpdateTime": self._clock.text}
        )
        return True

    def _finish(self) -> bool:
        attempt = next((one for one in self._crew if one.ended), None)
        if attempt is None:
            return False
        self._crew.remove(attempt)
        self._left.append(attempt)
        move = attempt.outcome()
        if move is not None:
            self._move(self._store.get(attempt.job.name), move)
        return True

    def _time_out(self) -> bool:
        return any(attempt.look() for attempt in self._crew)

    def _claim(self) -> bool:
        if len(self._crew) >= self._concurrency:
            return False
        waiting = [record for record in self._store if self._is_for_us(record.view)]
        if not waiting:
            return False
        record = max(waiting, key=lambda one: integer(one.spec, "priority"))
        self._store.change_status(record, self._claim_fields(record))
        attempt = Attempt(self._bench, record.obj, self._queues.cancel_grace(record.view.queue))
        self._crew.add(attempt)
        attempt.begin()
        return True

    def _is_for_us(self, job: JobView) -> bool:
        return job.type in self._bench.app.handlers and may_be_claimed(job)

    def _claim_fields(self, record: Record) -> Fields:
        job = record.view
        handler = self._bench.app.handlers[job.type]
        layers = (layer_of(record.spec), self._queues.layer(job.queue), handler.policy)
        candidate = Candidate(job.name, job.resource_version, job.type, attempt=job.attempt)
        holder = Holder(POD, _POD_UID, f"{POD}/{self._process}")
        token, now = f"claim-{next(self._claims)}", self._clock.text
        body = claim_body(candidate, holder, resolve(*layers), claim=token, now=now)
        return dict(child(body, "status"))

    # ---- the operator

    def _operate(self) -> bool:
        for record in self._store:
            effect = self._decide(record)
            if effect is None or isinstance(effect, Wait):
                continue
            if isinstance(effect, Rerun):
                self.rerun(record, effect.number)
            else:
                self._store.change_status(record, effect)
            return True
        return False

    def _decide(self, record: Record) -> Fields | Rerun | Wait | None:
        timeout = self._queues.queue_timeout(record.view.queue)
        return decide(Case(record, self._clock, timeout))

    def _move(self, record: Record, move: Move) -> None:
        self._store.change_status(record, render(move, record.status))
