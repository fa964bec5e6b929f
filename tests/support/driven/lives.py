"""Brings jobs on a real API server into any phase, by the writes that workers and operators do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asyncjob.lifecycle import phase_change
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phase_change import Failure, PhaseChange, status_fields, status_json_patch
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import Category
from asyncjob.lifecycle.waits import WaitKind, WaitView, wait_record
from asyncjob.names import JOBS, collection_path, job_path, job_status_path
from support.cluster.api import Answer, Client
from support.cluster.identities import Worker
from support.objects.builders import at, claim_of, job

LEFT_OUT: Any = object()
"""Instead of a value: the field is not written."""

Decide = Callable[[JobView], PhaseChange]

NO_LUCK = Failure(type="ValueError", category="Internal", message="no luck")
HOPELESS = Failure(type="ValueError", category="Internal", message="hopeless", permanent=True)

TOO_LONG = Failure("Timeout", "Timeout", "too long", reason=Reason.EXECUTION_TIMEOUT)
UNSTORABLE = Failure(
    "ResultRefused", "Validation", "too large", permanent=True, reason=Reason.RESULT_REFUSED
)


@dataclass(frozen=True)
class Life:
    """One job; the operator's moves are the admin's here, a worker's are its own."""

    namespace: str
    name: str
    admin: Client
    worker: Worker

    @property
    def path(self) -> str:
        """The path of the job."""
        return job_path(self.namespace, self.name)

    @property
    def status_path(self) -> str:
        """The path of its status."""
        return job_status_path(self.namespace, self.name)

    def create(self, **spec: Any) -> dict[str, Any]:
        """Create the job."""
        return self.admin.create(
            collection_path(self.namespace, JOBS), job(self.name, **spec)
        ).object()

    def read(self) -> dict[str, Any]:
        """Return the job as it is."""
        return self.admin.get(self.path).object()

    def status(self) -> dict[str, Any]:
        """Return its status."""
        status: dict[str, Any] = self.read()["status"]
        return status

    def change_spec(self, **controls: Any) -> Answer:
        """Change its spec."""
        return self.admin.merge(self.path, {"spec": controls})

    def claim(self, by: Worker | None = None) -> dict[str, Any]:
        """Have a worker claim it."""
        worker = by or self.worker
        body = claim_of(self.read(), worker.pod, worker.pod_uid)
        return worker.client.merge(self.status_path, body).object()

    def operations(self, decide: Decide, **changes: Any) -> list[Any]:
        """Return the patch of a move with some of its fields changed.

        A change is a value, LEFT_OUT, or a function of what the move would have written.
        """
        obj = self.read()
        fields = status_fields(decide(read_job(obj)), obj["status"])
        for name, change in changes.items():
            fields[name] = change(fields.get(name)) if callable(change) else change
        kept = {name: value for name, value in fields.items() if value is not LEFT_OUT}
        return list(status_json_patch(kept, obj["status"]))

    def move(self, decide: Decide, by: Client | None = None, **changes: Any) -> Answer:
        """Write the move."""
        return (by or self.admin).patch(self.status_path, self.operations(decide, **changes))

    def bring(self, phase: Phase) -> "Life":
        """Take a job that was just created into the phase."""
        for step in _STEPS[phase]:
            step(self)
        assert self.status()["phase"] == phase
        return self


def succeeded(view: JobView) -> PhaseChange:
    """Decide for success."""
    return phase_change.succeed(view, now=at(9), result={"sum": 3})


def failed(view: JobView) -> PhaseChange:
    """Decide for another attempt."""
    return phase_change.fail(view, NO_LUCK, now=at(9), jitter_sample=0.5)


def given_up(view: JobView) -> PhaseChange:
    """Decide for the dead letter."""
    return phase_change.fail(view, HOPELESS, now=at(9), jitter_sample=0.5)


def released(view: JobView) -> PhaseChange:
    """Decide for a release."""
    return phase_change.release(view, Reason.RELEASED, "drained", now=at(9), jitter_sample=0.5)


def evicted(view: JobView) -> PhaseChange:
    """Decide for a release because the pod is gone."""
    return phase_change.release(view, Reason.WORKER_GONE, "gone", now=at(9), jitter_sample=0.5)


def overran(view: JobView) -> PhaseChange:
    """Decide for another attempt after one that ran too long."""
    return phase_change.fail(view, TOO_LONG, now=at(9), jitter_sample=0.5)


def refused(view: JobView) -> PhaseChange:
    """Decide for the dead letter of a job whose result cannot be stored."""
    return phase_change.fail(view, UNSTORABLE, now=at(9), jitter_sample=0.5)


def parked(view: JobView) -> PhaseChange:
    """Decide for a park: the handler sleeps."""
    record = wait_record(WaitKind.SLEEP, at(60))
    waiting = (WaitView(WaitKind.SLEEP, "cooling-off", at(60)),)
    return phase_change.park(view, {"cooling-off": record}, waiting, now=at(9))


def waiting_for_approval(view: JobView) -> PhaseChange:
    """Decide for a park that waits for a signal."""
    record = wait_record(WaitKind.SIGNAL, at(60))
    waiting = (WaitView(WaitKind.SIGNAL, "approval", at(60)),)
    return phase_change.park(view, {"approval": record}, waiting, now=at(9))


def woken(view: JobView) -> PhaseChange:
    """Decide to queue a parked job whose sleep is over."""
    return phase_change.promote(view, now=at(70), waits_over=("cooling-off",))


def crashed(view: JobView) -> PhaseChange:
    """Decide for a crash."""
    return phase_change.crash(view, Reason.LEASE_EXPIRED, "silent", now=at(9), jitter_sample=0.5)


def expired(view: JobView) -> PhaseChange:
    """Decide for the end of a running job whose deadline has passed."""
    reason = Reason.DEADLINE_EXCEEDED
    return phase_change.cancel_running_job(view, "too late", now=at(9), reason=reason)


def cancelled(view: JobView) -> PhaseChange:
    """Decide for the cancellation of a running job."""
    return phase_change.cancel_running_job(view, "on request", now=at(9))


def scheduled(view: JobView) -> PhaseChange:
    """Decide to wait for the start time."""
    return phase_change.schedule(view, now=at(9))


def held_back(view: JobView) -> PhaseChange:
    """Decide to wait for a paused queue."""
    return phase_change.hold(view, Reason.QUEUE_PAUSED, "paused", now=at(9))


def promoted(view: JobView) -> PhaseChange:
    """Decide to queue a waiting job."""
    return phase_change.promote(view, now=at(9))


def dropped(view: JobView) -> PhaseChange:
    """Decide to cancel a waiting job, or to dismiss a dead letter."""
    dead = view.phase is Phase.DEAD_LETTER
    reason = Reason.DISMISSED if dead else Reason.CANCEL_REQUESTED
    return phase_change.cancel_waiting_job(view, reason, "on request", now=at(9))


def timed_out(view: JobView) -> PhaseChange:
    """Decide for the dead letter of a job nobody claimed."""
    return phase_change.dead_letter(
        view, Reason.QUEUE_TIMEOUT, Category.TIMEOUT, "nobody came", now=at(9)
    )


def redriven(view: JobView) -> PhaseChange:
    """Decide for a redrive."""
    return phase_change.redrive(view, now=at(9))


def _claim(life: Life) -> None:
    life.claim()


def _by_worker(decide: Decide) -> Callable[[Life], None]:
    return lambda life: _must(life.move(decide, life.worker.client))


def _by_operator(decide: Decide) -> Callable[[Life], None]:
    return lambda life: _must(life.move(decide))


def _cancel(life: Life) -> None:
    life.change_spec(cancel=True).object()


def _must(answer: Answer) -> None:
    answer.object()


_STEPS: dict[Phase, tuple[Callable[[Life], None], ...]] = {
    Phase.QUEUED: (),
    Phase.SCHEDULED: (_by_operator(scheduled),),
    Phase.PENDING: (_by_operator(held_back),),
    Phase.RUNNING: (_claim,),
    Phase.RETRYING: (_claim, _by_worker(failed)),
    Phase.SUCCEEDED: (_claim, _by_worker(succeeded)),
    Phase.DEAD_LETTER: (_claim, _by_worker(given_up)),
    Phase.CANCELLED: (_cancel, _by_operator(dropped)),
}
