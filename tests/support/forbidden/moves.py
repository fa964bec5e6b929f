"""What not even the operator may write."""

from dataclasses import replace
from typing import Final

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import PhaseChange, cancel_waiting_job, change_phase
from asyncjob.lifecycle.phases import Phase, Reason
from support.cluster.api import Answer
from support.driven.lives import (
    LEFT_OUT,
    Life,
    crashed,
    dropped,
    expired,
    held_back,
    promoted,
    redriven,
    scheduled,
    timed_out,
)
from support.forbidden.case import Case, ForbiddenSetup, operator_move, operator_report
from support.objects.builders import at


def _late(view: JobView) -> PhaseChange:
    return cancel_waiting_job(view, Reason.DEADLINE_EXCEEDED, "late", now=at(9))


def _begun_in_time(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.PENDING, notAfter=at())
    life.move(promoted, setup.operator).object()
    life.claim()
    return life.move(expired, setup.acting(setup.worker.client))


def _duplicate(view: JobView) -> PhaseChange:
    return cancel_waiting_job(view, Reason.DUPLICATE, "twice", now=at(9))


def _back(view: JobView) -> PhaseChange:
    return change_phase(view, Phase.QUEUED, now=at(9), reason=Reason.GATE_OPENED)


def _crashed_first(view: JobView) -> PhaseChange:
    return crashed(replace(view, crashes=0))


def _crashed_once(setup: ForbiddenSetup) -> Life:
    """Return a job that runs again after its first crash."""
    life = setup.life(Phase.RUNNING)
    life.move(crashed, setup.operator).object()
    life.claim()
    return life


def _again_at_once(setup: ForbiddenSetup) -> Answer:
    life = _crashed_once(setup)
    return life.move(_crashed_first, setup.acting(setup.operator), crashes=2)


def _again_as_a_release(setup: ForbiddenSetup) -> Answer:
    life = _crashed_once(setup)
    return life.move(crashed, setup.acting(setup.operator), crashes=LEFT_OUT, releases=1)


def _redriven_to(redrives: int) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.DEAD_LETTER)
        life.change_spec(redrive=2).object()
        return life.move(redriven, setup.acting(setup.operator), redrives=redrives)

    return Case("precondition.redrive", f"a redrive to {redrives} where 2 are asked for", attempt)


def _redriven_spent(counter: str) -> Case:
    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.DEAD_LETTER)
        life.change_spec(redrive=1).object()
        return life.move(redriven, setup.acting(setup.operator), **{counter: 1})

    return Case(f"budget.{counter}", f"a redrive that does not reset {counter}", attempt)


def _swapped_result(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.SUCCEEDED)
    operations = [{"op": "replace", "path": "/status/result", "value": {"min": 3}}]
    return setup.acting(setup.operator).patch(life.status_path, operations)


def _unphased(what: str, operation: dict[str, object]) -> Case:
    """Return a try to take the phase away, whose default is that of a new job."""

    def attempt(setup: ForbiddenSetup) -> Answer:
        life = setup.life(Phase.SUCCEEDED)
        return setup.acting(setup.operator).patch(life.status_path, [operation])

    return Case("transition.pair", f"a succeeded job {what}", attempt)


MOVES: Final[tuple[Case, ...]] = (
    _unphased("without a phase", {"op": "remove", "path": "/status/phase"}),
    _unphased("whose phase is null", {"op": "replace", "path": "/status/phase", "value": None}),
    _unphased("without a status", {"op": "remove", "path": "/status"}),
    _unphased("with another status", {"op": "replace", "path": "/status", "value": {}}),
    operator_move("transition.pair", "a cancelled job that comes back", Phase.CANCELLED, _back),
    operator_move("transition.pair", "a succeeded job that comes back", Phase.SUCCEEDED, _back),
    operator_move(
        "transition.reason", "a wrong reason", Phase.PENDING, promoted, reason="Redriven"
    ),
    operator_move("precondition.deadline", "a deadline no one set", Phase.QUEUED, _late),
    operator_move(
        "precondition.deadline", "a running job's, set by no one", Phase.RUNNING, expired
    ),
    Case("precondition.deadline", "a running job's that was to start by then", _begun_in_time),
    operator_move("precondition.duplicate", "a duplicate of nothing", Phase.QUEUED, _duplicate),
    operator_move("precondition.not-before", "a start time no one set", Phase.QUEUED, scheduled),
    operator_move("precondition.cancel", "a cancellation no one asked for", Phase.QUEUED, dropped),
    operator_move(
        "precondition.cancel", "a dismissal no one asked for", Phase.DEAD_LETTER, dropped
    ),
    operator_move(
        "precondition.redrive", "a redrive no one asked for", Phase.DEAD_LETTER, redriven
    ),
    operator_report("precondition.rerun", "a rerun no one asked for", Phase.SUCCEEDED, reruns=1),
    operator_report("precondition.rerun", "a rerun of a job that runs", Phase.RUNNING, reruns=1),
    operator_move(
        "precondition.rerun", "a move that makes up a rerun", Phase.PENDING, promoted, reruns=1
    ),
    _redriven_to(1),
    _redriven_to(3),
    *(_redriven_spent(counter) for counter in ("retries", "crashes", "releases", "parks")),
    operator_move(
        "claim.admitted", "a waiting job that is admitted", Phase.QUEUED, held_back, admitted=True
    ),
    operator_move(
        "budget.crashes", "a crash of a job nobody ran", Phase.QUEUED, timed_out, crashes=1
    ),
    operator_move("budget.crashes", "a crash that costs two", Phase.RUNNING, crashed, crashes=2),
    operator_move(
        "budget.requeue-counted",
        "a first crash as a release",
        Phase.RUNNING,
        crashed,
        crashes=LEFT_OUT,
        releases=1,
    ),
    operator_move(
        "budget.requeue-counted",
        "a first crash that counts a release besides",
        Phase.RUNNING,
        crashed,
        releases=1,
    ),
    Case("budget.requeue-counted", "a second crash without a backoff", _again_at_once),
    Case("budget.by-reason", "a second crash as a release", _again_as_a_release),
    operator_move(
        "running.progress", "progress nobody made", Phase.QUEUED, held_back, progress={"percent": 9}
    ),
    operator_move(
        "running.checkpoint", "a checkpoint nobody made", Phase.QUEUED, held_back, checkpoint=[1]
    ),
    operator_report(
        "running.progress", "progress of a waiting job", Phase.PENDING, progress={"percent": 9}
    ),
    operator_report(
        "running.checkpoint", "a waiting job's checkpoint", Phase.PENDING, checkpoint=[1]
    ),
    operator_report(
        "claim.admitted", "a retrying job that is admitted", Phase.RETRYING, admitted=True
    ),
    operator_report(
        "lease.iff-running",
        "a lease on a queued job",
        Phase.QUEUED,
        lease={
            "holder": "a",
            "holderUID": "b",
            "worker": "c",
            "acquireTime": at(),
            "renewTime": at(),
            "durationSeconds": 60,
        },
    ),
    operator_report("retrying.delay", "a shorter delay", Phase.RETRYING, retryDelaySeconds=0),
    operator_report("finished.frozen", "another message", Phase.SUCCEEDED, message="well done"),
    operator_report("finished.frozen", "another time", Phase.CANCELLED, lastUpdateTime=at(99)),
    operator_report(
        "finished.frozen", "a message on a dead letter", Phase.DEAD_LETTER, message="so?"
    ),
    operator_report(
        "finished.completion-time", "another end", Phase.SUCCEEDED, completionTime=at(99)
    ),
    operator_report(
        "steady.error",
        "another error",
        Phase.DEAD_LETTER,
        error={
            "type": "None",
            "category": "Internal",
            "message": "none",
        },
    ),
    Case("result.by-success", "a result whose keys are swapped", _swapped_result),
)
