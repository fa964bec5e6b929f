"""The protocol in one page: one job, two workers, an operator, and a network that delays.

Read it from the top. `Job` is what the API server stores, `State` adds what workers and operator
believe and what is still on its way. `steps` is all that can happen. `RULES` is what the API server
demands of a write, and what its writers demand of themselves. `PROMISES` has to hold in each state.
`check` visits every state; with one rule taken out it returns the shortest way to a broken promise.

    python -m asyncjob_dev.proofs.short_model
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

WORKERS: Final = ("worker A", "worker B")
OPERATOR: Final = "operator"
MAX_ATTEMPTS: Final = 3


@dataclass(frozen=True)
class Job:
    """What the API server stores; `holder` has the lease."""

    phase: str = "Queued"
    attempt: int = 0
    claim: int = 0
    holder: str = ""


@dataclass(frozen=True)
class Write:
    """What `by` wants the job to be; `because` is the claim or version that it goes by, if any."""

    by: str
    wanted: Job
    because: Job | int | None = None


@dataclass(frozen=True)
class State:
    """The job, the claim each worker works on (0: none), and the writes that are on their way."""

    job: Job = Job()
    works: tuple[int, int] = (0, 0)
    sent: frozenset[Write] = frozenset()
    stored_by: int = 0
    """The claim whose result is stored."""


def steps(state: State, rules: "dict[str, Rule]") -> Iterator[tuple[str, State]]:
    """Yield all that can happen next, each with a sentence."""
    job = state.job
    for number, worker in enumerate(WORKERS):
        claim = state.works[number]
        if claim:
            done = Write(worker, replace(job, phase="Done", holder=""), because=claim)
            yield f"{worker} sends its result", replace(state, sent=state.sent | {done})
            yield f"{worker} stops: it died, or could not renew", _with(state, number, 0)
        yield from _tries(state, number, rules)
    if job.phase == "Running" and (
        "patience" not in rules or job.claim not in state.works
    ):  # no worker acts on a lease that the operator counts as expired
        take = Write(OPERATOR, replace(job, phase="Queued", holder=""), because=job)
        yield "the operator takes the job away", replace(state, sent=state.sent | {take})
    for write in state.sent:
        arrived = replace(state, sent=state.sent - {write})
        yield f"the write of {write.by} is lost", arrived
        late = _late(job, write)
        if late != job and all(rule(job, late, write) for rule in rules.values()):
            yield f"{_text(late)} is stored for {write.by}", _stored(arrived, late, write)


def _tries(state: State, number: int, rules: "dict[str, Rule]") -> Iterator[tuple[str, State]]:
    """Yield the writes of a worker that may be wrong in any way; it works if it has claimed.

    Each names the job's claim, which anybody may read: what keeps strangers out is not that.
    """
    job, worker = state.job, WORKERS[number]
    if job.attempt == MAX_ATTEMPTS:
        return
    fields = product(
        ("Queued", "Running", "Done"),
        (job.attempt, job.attempt + 1),
        (job.claim, job.claim + 1),
        ("", *WORKERS),
    )
    for wanted in (Job(*values) for values in fields):
        write = Write(worker, wanted, because=job.claim)
        if wanted != job and all(rule(job, wanted, write) for rule in rules.values()):
            after = _stored(state, wanted, write)
            if wanted.phase == "Running" and wanted.holder == worker:
                after = _with(after, number, wanted.claim)
            yield f"{worker} writes {_text(wanted)}", after


def _late(job: Job, write: Write) -> Job:
    """Return what a write asks for as it arrives: it replaces phase and holder of whatever is."""
    return replace(job, phase=write.wanted.phase, holder=write.wanted.holder)


def _stored(state: State, wanted: Job, write: Write) -> State:
    """Return the state after a write; a worker that has given the job away stops."""
    ended = wanted.phase == "Done" and state.job.phase != "Done"
    by = write.because if isinstance(write.because, int) else -1
    after = replace(state, job=wanted, stored_by=by if ended else state.stored_by)
    if write.by in WORKERS and write.because == state.job.claim and wanted.phase != "Running":
        return _with(after, WORKERS.index(write.by), 0)
    return after


def _with(state: State, number: int, claim: int) -> State:
    works = (claim, state.works[1]) if number == 0 else (state.works[0], claim)
    return replace(state, works=works)


def _text(job: Job) -> str:
    held = f", held by {job.holder}" if job.holder else ""
    return f"{job.phase} (attempt {job.attempt}, claim {job.claim}{held})"


Rule = Callable[[Job, Job, Write], bool]
TRANSITIONS: Final = {("Queued", "Running"), ("Running", "Queued"), ("Running", "Done")}


def _claims(was: Job, now: Job) -> bool:
    return was.phase != "Running" and now.phase == "Running"


RULES: Final[dict[str, Rule]] = {
    "transition.pair": lambda was, now, _: (
        was.phase == now.phase or (was.phase, now.phase) in TRANSITIONS
    ),
    "claim.attempt": lambda was, now, _: now.attempt == was.attempt + _claims(was, now),
    "claim.id": lambda was, now, _: (now.claim != was.claim) == _claims(was, now),
    "lease.iff-running": lambda _was, now, _: bool(now.holder) == (now.phase == "Running"),
    "lease.held": lambda was, now, _: (
        was.phase != "Running" or now.phase != "Running" or now.holder == was.holder
    ),
    "owner.holder": lambda was, now, write: write.by in {OPERATOR, was.holder or now.holder},
    "fence": lambda was, _now, write: (
        write.by == OPERATOR or was.phase != "Running" or write.because == was.claim
    ),
    "version": lambda was, _now, write: write.by != OPERATOR or write.because == was,
    "patience": lambda _was, _now, _write: True,  # asked before the operator sends, in `steps`
}
"""By the rule's id. The last three are no rules of the API server's: a worker's patch tests its
claim, the operator's names the version it goes by, and it waits for longer than a lease lasts."""

PROMISES: Final[dict[str, Callable[[State], bool]]] = {
    "two workers never work at once": lambda state: not all(state.works),
    "who works holds the lease": lambda state: all(
        not claim or (state.job.phase, state.job.claim, state.job.holder) == ("Running", claim, who)
        for who, claim in zip(WORKERS, state.works, strict=True)
        if state.job.phase != "Done"
    ),
    "attempts and claims are counted alike": lambda state: state.job.attempt == state.job.claim,
    "a lease is held while the job runs, and only then": lambda state: (
        bool(state.job.holder) == (state.job.phase == "Running")
    ),
    "the result is that of the last claim": lambda state: (
        state.job.phase != "Done" or state.stored_by == state.job.claim > 0
    ),
    "a job that is done stays done": lambda state: not state.stored_by or state.job.phase == "Done",
}


@dataclass(frozen=True)
class Finding:
    """A broken promise, and the sentences that lead to it."""

    promise: str
    trace: tuple[str, ...]


def check(without: str = "") -> Finding | int:
    """Return the number of states, or the shortest way to a broken promise."""
    rules = {name: rule for name, rule in RULES.items() if name != without}
    came: dict[State, tuple[State, str] | None] = {State(): None}
    before: dict[State, list[State]] = {}
    waiting = deque([State()])
    while waiting:
        state = waiting.popleft()
        for promise, holds in PROMISES.items():
            if not holds(state):
                return Finding(promise, _trace(came, state))
        for sentence, after in steps(state, rules):
            before.setdefault(after, []).append(state)
            if after not in came:
                came[after] = (state, sentence)
                waiting.append(after)
    for stuck in came.keys() - _can_end(came, before):
        return Finding("every job can still end", _trace(came, stuck))
    return len(came)


def _can_end(
    came: dict[State, tuple[State, str] | None], before: dict[State, list[State]]
) -> set[State]:
    """Return the states from which the job can end; the last attempt may not be repeated here."""
    ends = {one for one in came if one.job.phase == "Done" or one.job.attempt == MAX_ATTEMPTS}
    waiting = list(ends)
    while waiting:
        for earlier in before.get(waiting.pop(), ()):
            if earlier not in ends:
                ends.add(earlier)
                waiting.append(earlier)
    return ends


def _trace(came: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    sentences: list[str] = []
    while (step := came[state]) is not None:
        state, sentence = step
        sentences.append(sentence)
    return tuple(reversed(sentences))


def is_sound() -> bool:
    """Return whether every promise is kept, and each rule is needed for that."""
    twins = [check(without=rule) for rule in RULES]
    return isinstance(check(), int) and all(isinstance(twin, Finding) for twin in twins)


def report() -> Iterator[str]:
    """Yield the lines that say what was found."""
    found = check()
    yield f"{found} states, every promise kept" if isinstance(found, int) else f"broken: {found}"
    for rule in RULES:
        twin = check(without=rule)
        if isinstance(twin, int):
            yield f"without {rule}: nothing is broken in {twin} states"
            continue
        yield f"without {rule} it is not true that {twin.promise}:"
        yield from (f"  {number}. {sentence}" for number, sentence in enumerate(twin.trace, 1))


if __name__ == "__main__":
    print("\n".join(report()))
