"""What an operator of the search does: the project's own `observe` and `decide`, and one write.

Both replicas act, whoever leads: the promises do not rest on the election. Times are kept relative
to now, so that two states which differ only in their date are one.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

from asyncjob.json_types import child
from asyncjob.lifecycle.deduplication import is_live
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import StatusFields, status_fields, status_merge_patch
from asyncjob.lifecycle.phases import Phase
from asyncjob_dev.proofs.protocol.server import Stored, load, merged, phase_of, view
from asyncjob_dev.proofs.protocol.state import (
    MAX_AGE,
    OPERATES,
    TICK,
    Operator,
    State,
    World,
    identity_of,
)
from asyncjob_dev.proofs.protocol.workers import Step, write
from asyncjob_operator.core.decide import decide
from asyncjob_operator.core.decision import (
    Admit,
    CancelDeleted,
    CascadeCancel,
    ChangePhase,
    CreateRerun,
    DuplicateStillLive,
    NoLiveDuplicate,
    Precondition,
    UpdateWaitReason,
    WorkerReplaced,
)
from asyncjob_operator.core.liveness import UNKNOWN_HOLDER, HolderStatus
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import OPEN_QUEUE, DecisionOptions
from asyncjob_operator.core.snapshot import Observation, Snapshot, observe

NOW: Final = Now(monotonic=0.0, wall=1_767_225_600.0)
OPTIONS: Final = DecisionOptions()
HASTY: Final = DecisionOptions(lease_margin=-TICK)
"""For an operator that does not wait until a lease is over."""


@cache
def observed(previous: Observation | None, job: Stored) -> Observation:
    """Return what a replica knows after seeing the job now, times relative to now."""
    return observe(previous, view(job), OPEN_QUEUE, NOW, just_changed=True)


@cache
def remembered(seen: Observation | None, job: Stored) -> Observation | None:
    """Return what of an observation later decisions depend on.

    Only leases and grace periods are timed here; all other timers are far longer than a search, or
    have no delay.
    """
    if seen is None or phase_of(job) is not Phase.RUNNING:
        return None
    if observed(seen, job).phase_entry != seen.phase_entry:
        return None  # of an earlier stay
    return replace(
        seen, entered_at=seen.renewed_at, claimable_since=None, created_at=None, retry_at=None
    )


@cache
def seen_at_once(seen: Observation | None, job: Stored) -> Observation | None:
    """Return what a replica remembers that sees every version of a job as it is stored."""
    return remembered(observed(remembered(seen, job), job), job)


@cache
def aged_observation(seen: Observation) -> Observation:
    """Return an observation a tick later."""
    cancel = seen.cancel_requested_at
    return replace(
        seen,
        renewed_at=_earlier(seen.renewed_at),
        entered_at=_earlier(seen.entered_at),
        cancel_requested_at=None if cancel is None else _earlier(cancel),
    )


def _earlier(time: float) -> float:
    return max(time - TICK, -MAX_AGE * TICK)


def operator_steps(world: World, state: State, number: int) -> Iterator[Step]:
    """Yield what a replica may do next."""
    operator = state.operators[number]
    name = f"operator {number}"
    for place, body in enumerate(operator.pending):
        after = merged(state.jobs[place], body, OPERATES) if body else None
        if after is not None and after != state.jobs[place]:
            yield Step(f"{name} {_said(after, place)}", write(state, place, after))
    if state.faults and any(operator.seen):
        blank = operator._replace(seen=(None,) * len(state.jobs))
        restarted = _with(state, number, blank)._replace(faults=state.faults - 1)
        yield Step(f"{name} starts again", restarted, is_fault=True)
    for place, job in enumerate(state.jobs):
        if world.related and operator.cache[place] != job:
            known = _knowing(operator, place, job)
            yield Step(f"{name} gets to know job {place}", _with(state, number, known))
        yield from _sees(state, number, place, job)
        yield from _reconciles(world, state, number, place, job)


def _with(state: State, number: int, operator: Operator) -> State:
    operators = (*state.operators[:number], operator, *state.operators[number + 1 :])
    return state._replace(operators=operators)


def _sees(state: State, number: int, place: int, job: Stored) -> Iterator[Step]:
    operator = state.operators[number]
    known = remembered(operator.seen[place], job)
    now = remembered(observed(known, job), job)
    if now is not None and now != operator.seen[place]:
        yield Step(
            f"operator {number} sees job {place}",
            _with(state, number, _seeing(operator, place, now)),
        )


def _seeing(operator: Operator, place: int, seen: Observation | None) -> Operator:
    known = (*operator.seen[:place], seen, *operator.seen[place + 1 :])
    return operator._replace(seen=known)


def _knowing(operator: Operator, place: int, job: Stored) -> Operator:
    known = (*operator.cache[:place], job, *operator.cache[place + 1 :])
    return operator._replace(cache=known)


def _reconciles(world: World, state: State, number: int, place: int, job: Stored) -> Iterator[Step]:
    """Read the job, decide, verify, write; what is known of workers and other jobs may be old."""
    operator = state.operators[number]
    seen = observed(remembered(operator.seen[place], job), job)
    others = operator.cache if world.related else ()
    options = HASTY if "patience" in world.without else OPTIONS
    for holder in _holders(state, job):
        action = action_on(job, seen, holder, _duplicate(others, place), options)
        if action is None:
            continue
        if _precaution(action.precondition) not in world.without and not _verified(
            state, action.precondition
        ):
            continue
        reading = _seeing(operator, place, remembered(seen, job))
        said = _said(action.after, place)
        if not others:
            text = f"operator {number} {said}"
            yield Step(text, write(_with(state, number, reading), place, action.after))
            continue
        waits = _knowing(reading, place, job).awaiting(place, action.body)
        if waits != operator:
            yield Step(f"operator {number} decides: {said}", _with(state, number, waits))


def _said(after: Stored, place: int) -> str:
    job = view(after)
    admitted = ", admitted" if job.admitted else ""
    reason = f" for {job.reason}" if job.reason else ""
    return f"sets job {place} to {job.phase.value}{reason}{admitted}"


def _holders(state: State, job: Stored) -> Iterator[HolderStatus]:
    """Yield what a replica may know of the lease's pod: nothing, or any process until today's."""
    yield UNKNOWN_HOLDER
    lease = view(job).lease
    if lease is None:
        return
    worker = int(lease.holder.removeprefix("pod-"))
    for process in range(1, state.workers[worker].process + 1):
        if identity_of(worker, process) != lease.worker:
            yield HolderStatus(newest_worker=identity_of(worker, process), newest_worker_since=0.0)


def _duplicate(others: tuple[Stored, ...], place: int) -> JobView | None:
    """Return the other live job, as the cache has it; all jobs have the same deduplication id."""
    known = (view(job) for number, job in enumerate(others) if number != place and job)
    return next(filter(is_live, known), None)


class Action(NamedTuple):
    """What a replica does about a job, and what the job is then."""

    precondition: Precondition | None
    body: str
    """The patch of its status; empty if it is another write."""

    after: Stored


@cache
def action_on(
    job: Stored,
    seen: Observation,
    holder: HolderStatus,
    duplicate: JobView | None,
    options: DecisionOptions,
) -> Action | None:
    """Return what the operator decides and what becomes of it; None if there is nothing to do."""
    snapshot = Snapshot(view(job), seen, options, holder=holder, live_duplicate=duplicate)
    effect = decide(snapshot, NOW).effect
    fields: StatusFields
    match effect:
        case ChangePhase(change=change):
            fields = status_fields(change, child(load(job), "status"))
        case Admit():
            fields = {"admitted": True}
        case UpdateWaitReason(reason=reason, message=message):
            fields = {"reason": reason.value, "message": message}
        case CancelDeleted() | CascadeCancel() | CreateRerun():
            raise TypeError(f"{effect} is not decided in these worlds")
        case _:
            return None
    body = json.dumps(status_merge_patch(fields, "1"))
    after = merged(job, body, OPERATES)
    precondition = effect.precondition if isinstance(effect, ChangePhase | Admit) else None
    return None if after is None or after == job else Action(precondition, body, after)


def _precaution(precondition: Precondition | None) -> str:
    """Return the name of the precaution that a precondition is."""
    return "look" if isinstance(precondition, NoLiveDuplicate) else "verify"


def _verified(state: State, precondition: Precondition | None) -> bool:
    """Return whether live reads confirm what the decision took from the cache."""
    match precondition:
        case None:
            return True
        case WorkerReplaced(_, pod, replaced):
            number = int(pod.removeprefix("pod-"))
            return identity_of(number, state.workers[number].process) != replaced
        case DuplicateStillLive(_, _, uid):
            return any(view(job).uid == uid and is_live(view(job)) for job in state.jobs)
        case NoLiveDuplicate(_, uid, _):
            return not any(view(job).uid != uid and is_live(view(job)) for job in state.jobs)
    raise TypeError(f"{precondition} is not decided in these worlds")
