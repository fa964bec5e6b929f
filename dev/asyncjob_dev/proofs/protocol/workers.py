"""What a worker of the search does: the project's own patches and checks, one request at a time.

A request that is answered takes effect as it is sent: that it was on its way for a while changes
nothing unless the answer is lost, and then it may arrive at any time (`late`).
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from asyncjob.errors import ApiError
from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.claim import Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.phase_change import (
    Failure,
    PhaseChange,
    cancel_running_job,
    crash,
    fail,
    release,
    succeed,
)
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import read_policy_layer, resolve_policy
from asyncjob_dev.proofs.protocol.server import (
    Stored,
    load,
    merged,
    patched,
    phase_of,
    status_of,
    view,
)
from asyncjob_dev.proofs.protocol.state import (
    CLAIMING,
    ENDING,
    IDLE,
    MAX_AGE,
    TICK,
    WORKING,
    Request,
    State,
    Worker,
    World,
    identity_of,
    pod_of,
)
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.ownership import Ownership, check_ownership
from asyncjob_worker.leases.patches import outcome_patch, renewal_patch


class Step(NamedTuple):
    """What happens, what it leads to, and whether it needs a fault or a user who asks."""

    text: str
    state: State
    is_fault: bool = False
    breaks: str = ""
    """The promise that is broken by this having happened at all."""


_FAILURE: Final = Failure(type="ValueError", category="Internal", message="no luck")


def clock_of(worker: int) -> str:
    """Return the time by a worker's own clock, which differs from all others."""
    return f"2026-01-02T00:00:1{worker}Z"


@cache
def claim_body(job: Stored, worker: int, process: int, claim: str) -> str:
    """Return the worker's patch that claims the job."""
    seen = view(job)
    candidate = Candidate(seen.name, "1", seen.type, attempt=seen.attempt)
    holder = LeaseHolder(f"pod-{worker}", f"pod-uid-{worker}", identity_of(worker, process))
    spec: Any = load(job)["spec"]
    policy = resolve_policy(read_policy_layer(spec))
    return json.dumps(claim_patch(candidate, holder, policy, claim_id=claim, now=clock_of(worker)))


@cache
def held_job(seen: Stored, age: int) -> HeldJob:
    """Return the job as its worker holds it; the lease clock shows 0."""
    return HeldJob.from_response(load(seen), -age * TICK)


@cache
def outcome_change(seen: Stored, outcome: str, worker: int) -> PhaseChange:
    """Return the change of phase that ends the attempt."""
    job, now = view(seen), clock_of(worker)
    match outcome:
        case "succeed":
            return succeed(job, now=now, result={"sum": 3})
        case "fail":
            return fail(job, _FAILURE, now=now, jitter_sample=0.5)
        case "crash":
            return crash(job, Reason.HANDLER_CRASHED, "died", now=now, jitter_sample=0.5)
        case "cancel":
            return cancel_running_job(job, "on request", now=now)
        case _:
            return release(job, Reason.RELEASED, "drained", now=now, jitter_sample=0.5)


@cache
def outcome_body(seen: Stored, outcome: str, worker: int) -> str:
    """Return the worker's patch that stores the outcome."""
    held = held_job(seen, 0)
    return json.dumps(outcome_patch(held, outcome_change(seen, outcome, worker), held.status, None))


@cache
def renewal_body(seen: Stored, renewals: int, worker: int) -> str:
    """Return the worker's heartbeat."""
    held = held_job(seen, 0)
    held.renewals = renewals
    return json.dumps(renewal_patch(held, None, clock_of(worker)))


class _Reads:
    """A session that answers each read with one job."""

    def __init__(self, job: Stored) -> None:
        self._job = job

    async def get(self, _path: str) -> JsonObject:
        return load(self._job)


@cache
def ownership_of(seen: Stored, current: Stored) -> Ownership:
    """Return what the worker's own check says after reading the job."""
    check = check_ownership(_Reads(current), held_job(seen, 0))  # type: ignore[arg-type]  # reads only
    try:
        check.send(None)
    except StopIteration as done:
        found: Ownership = done.value.ownership
        return found
    except ApiError:
        return Ownership.UNKNOWN
    raise AssertionError("a check of the ownership waits for something else than the read")


def worker_steps(world: World, state: State, number: int) -> Iterator[Step]:
    """Yield what a worker may do next."""
    worker = state.workers[number]
    name = f"worker {number}"
    if worker.frozen:
        yield Step(f"{name} wakes", _woken(world, state, number))
        return
    if state.faults:
        if worker.stage != IDLE:
            fresh = Worker(process=worker.process + 1)
            yield Step(
                f"{name} dies and starts again", _with(state, number, fresh, 1), is_fault=True
            )
        if worker.stage in {WORKING, ENDING}:
            frozen = worker._replace(frozen=True)
            yield Step(f"{name} is frozen", _with(state, number, frozen, 1), is_fault=True)
    match worker.stage:
        case "idle":
            yield from _claims(state, number)
        case "claiming":
            yield from _claims_again(state, number)
        case "working":
            yield from _works(world, state, number)
        case _:
            yield from _ends(world, state, number)


def _with(state: State, number: int, worker: Worker, faults: int = 0) -> State:
    workers = (*state.workers[:number], worker, *state.workers[number + 1 :])
    return state._replace(workers=workers, faults=state.faults - faults)


def write(state: State, place: int, new: Stored) -> State:
    """Return the state with a job changed; what can no longer apply to it is forgotten."""
    jobs = (*state.jobs[:place], new, *state.jobs[place + 1 :])
    late = state.late
    if late:
        late = frozenset(one for one in late if one.job != place or _may_apply(one, new))
    operators = state.operators
    if any(one.pending[place] for one in operators):
        operators = tuple(one.awaiting(place, "") for one in operators)
    return state._replace(jobs=jobs, late=late, operators=operators)


def _may_apply(request: Request, job: Stored) -> bool:
    """Return whether a late request may yet be accepted: no version and no claim comes back."""
    if request.version:
        return False
    if not any(operation["op"] == "test" for operation in json.loads(request.patch)):
        return True  # in a world whose workers do not test the claim
    status = status_of(job)
    if status.get("claim") == request.claim and status["phase"] == Phase.RUNNING:
        return True
    return patched(job, request.patch, pod_of(request.by)) is not None


def _holding(worker: Worker, place: int, job: Stored, claim: str, age: int = 0) -> Worker:
    return Worker(worker.process, stage=WORKING, job=place, seen=job, claim=claim, age=age)


def _idle(worker: Worker) -> Worker:
    return Worker(process=worker.process)


def _claims(state: State, number: int) -> Iterator[Step]:
    worker = state.workers[number]
    for place, job in enumerate(state.jobs):
        if phase_of(job) is not Phase.QUEUED:
            continue
        nonce = sum(one.by == number and not one.claim for one in state.late)
        attempt = view(job).attempt + 1
        claim = f"{attempt}-of-{number}/{worker.process}" + "'" * nonce
        body = claim_body(job, number, worker.process, claim)
        after = merged(job, body, pod_of(number))
        if after is None:
            continue
        text = f"worker {number} claims job {place}"
        held = _holding(worker, place, after, claim)
        yield Step(text, _with(write(state, place, after), number, held))
        if state.faults:
            asks = worker._replace(
                stage=CLAIMING, job=place, seen=job, claim=claim, age=0, unknown=True
            )
            lost = _with(write(state, place, after), number, asks, 1)
            yield Step(f"{text}, and the answer is lost", lost, is_fault=True)
            request = Request(place, body, number, "", job)
            later = _with(state, number, asks, 1)
            later = later._replace(late=later.late | {request})
            yield Step(f"{text}, and the request is late", later, is_fault=True)


def _claims_again(state: State, number: int) -> Iterator[Step]:
    """Send the same claim again; an error proves nothing, so that the job is read."""
    worker = state.workers[number]
    job = state.jobs[worker.job]
    text = f"worker {number} sends its claim of job {worker.job} again"
    body = claim_body(worker.seen, number, worker.process, worker.claim)
    after = merged(job, body, pod_of(number)) if job == worker.seen else None
    if after is not None:
        held = _holding(worker, worker.job, after, worker.claim)
        yield Step(text, _with(write(state, worker.job, after), number, held))
        return
    status = status_of(job)
    if status.get("claim") == worker.claim and status["phase"] == Phase.RUNNING:
        held = _holding(worker, worker.job, job, worker.claim, worker.age)
        begun = stopped_if_unsafe(held)  # `HeldJob.fence_if_expired`, before the handler begins
        yield Step(f"{text} and finds that it has the job", _with(state, number, begun))
    else:
        yield Step(f"{text} and finds that it has not", _with(state, number, _idle(worker)))


def _works(world: World, state: State, number: int) -> Iterator[Step]:
    worker = state.workers[number]
    outcomes = list(world.outcomes)
    if "release" in outcomes and view(worker.seen).releases:
        outcomes.remove("release")
    if view(state.jobs[worker.job]).control.cancel:
        outcomes.append("cancel")
    for outcome in outcomes:
        ending = worker._replace(stage=ENDING, outcome=outcome)
        yield Step(f"the handler of worker {number} ends: {outcome}", _with(state, number, ending))
    yield from _renews(world, state, number)


def _renews(world: World, state: State, number: int) -> Iterator[Step]:
    worker = state.workers[number]
    if worker.renewals >= world.max_renewals or (not worker.age and worker.unconfirmed < 0):
        return  # a heartbeat is due after a third of the lease, or again after a lost one
    job, text = state.jobs[worker.job], f"worker {number} renews its lease of job {worker.job}"
    body = renewal_body(worker.seen, worker.renewals, number)
    after = patched(job, body, pod_of(number))
    if after is None:
        yield Step(f"{text}, which is refused", _after_refused_renewal(state, number))
    else:
        done = worker._replace(age=0, renewals=worker.renewals + 1, unconfirmed=-1)
        stored = _with(write(state, worker.job, after), number, done)
        yield Step(text, stored, breaks=fencing(state, worker.claim, worker.job))
    if not state.faults:
        return
    waits = worker if worker.unconfirmed >= 0 else worker._replace(unconfirmed=0)
    if after is not None:
        lost = _with(write(state, worker.job, after), number, waits, 1)
        yield Step(f"{text}, and the answer is lost", lost, is_fault=True)
    later = _with(state, number, waits, 1)
    request = Request(worker.job, body, number, worker.claim, "")
    yield Step(
        f"{text}, and it is late", later._replace(late=later.late | {request}), is_fault=True
    )


def _after_refused_renewal(state: State, number: int) -> State:
    worker = state.workers[number]
    job = state.jobs[worker.job]
    owned = ownership_of(worker.seen, job)
    if owned in {Ownership.FENCED, Ownership.LEFT}:
        return _with(state, number, _idle(worker) if worker.stage == WORKING else worker)
    lease = view(job).lease
    known = lease.renewals if lease else 0
    age = worker.unconfirmed if worker.unconfirmed >= 0 else worker.age
    if known == worker.renewals:
        return state
    return _with(state, number, worker._replace(renewals=known, age=age, unconfirmed=-1))


def _ends(world: World, state: State, number: int) -> Iterator[Step]:
    """Write the outcome; read the job first where it may be another's by now."""
    worker = state.workers[number]
    job, text = state.jobs[worker.job], f"worker {number} writes its outcome of job {worker.job}"
    expired = held_job(worker.seen, worker.age).lease_expires_at < 0
    if worker.unknown or expired:
        owned = ownership_of(worker.seen, job)
        if owned is not Ownership.HELD:
            yield Step(
                f"{text} no more: it has the job no longer", _with(state, number, _idle(worker))
            )
            return
    body = outcome_body(worker.seen, worker.outcome, number)
    if "fence" in world.without:
        body = json.dumps([one for one in json.loads(body) if one["op"] != "test"])
    after = patched(job, body, pod_of(number))
    if after is not None:
        stored = _with(write(state, worker.job, after), number, _idle(worker))
        yield Step(text, stored, breaks=fencing(state, worker.claim, worker.job))
    elif not (worker.unknown or expired):
        unsure = worker._replace(unknown=True)
        yield Step(f"{text}, which is refused", _with(state, number, unsure))
    if not state.faults:
        return
    unsure = worker._replace(unknown=True)
    if after is not None:
        lost = _with(write(state, worker.job, after), number, unsure, 1)
        yield Step(f"{text}, and the answer is lost", lost, is_fault=True)
    later = _with(state, number, unsure, 1)
    request = Request(worker.job, body, number, worker.claim, "")
    yield Step(
        f"{text}, and it is late", later._replace(late=later.late | {request}), is_fault=True
    )


def _woken(world: World, state: State, number: int) -> State:
    worker = state.workers[number]._replace(frozen=False)
    return _with(state, number, worker if "stop" in world.without else stopped_if_unsafe(worker))


def stopped_if_unsafe(worker: Worker) -> Worker:
    """Return the worker after its heartbeat thread has looked at the lease."""
    if worker.frozen or worker.stage != WORKING:
        return worker
    return _idle(worker) if held_job(worker.seen, worker.age).safe_until < 0 else worker


def aged(world: World, worker: Worker) -> Worker:
    """Return the worker a tick later."""
    if worker.stage == IDLE:
        return worker
    unconfirmed = worker.unconfirmed
    if unconfirmed >= 0:
        unconfirmed = min(unconfirmed + 1, MAX_AGE)
    older = worker._replace(age=min(worker.age + 1, MAX_AGE), unconfirmed=unconfirmed)
    return older if "stop" in world.without else stopped_if_unsafe(older)


def late_steps(state: State) -> Iterator[Step]:
    """Yield the arrivals of requests that nobody waits for any more."""
    for request in state.late:
        job = state.jobs[request.job]
        rest = state._replace(late=state.late - {request})
        if request.version:
            after = merged(job, request.patch, pod_of(request.by))
        else:
            after = patched(job, request.patch, pod_of(request.by))
        if after is not None and after != job:
            breaks = fencing(state, request.claim, request.job) if request.claim else ""
            text = f"a late request of worker {request.by} for job {request.job} arrives"
            yield Step(text, write(rest, request.job, after), breaks=breaks)


def fencing(state: State, claim: str, place: int) -> str:
    """Return the promise that an accepted write by this claim breaks: the job is not held by it."""
    status = status_of(state.jobs[place])
    held = status.get("claim") == claim and status["phase"] == Phase.RUNNING
    return "" if held else "a fenced attempt changes nothing"
