"""Whether steps, signals, children and items of arrays are what they are promised to be.

A parked job is entered again, which is no repetition. So what is judged is what the handlers did
between: the effects of steps and items, and what signals and children brought.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from asyncjob.json_types import JsonObject, child, integer, text
from asyncjob_chaos.judging.outcomes import JobOutcome, Outcomes
from asyncjob_chaos.judging.wait_trace import WaitTrace


@dataclass(frozen=True, slots=True)
class SentSignal:
    """A signal that a client has sent to a job."""

    job: str
    name: str
    value: int
    accepted: bool | None
    """None if no client has learnt what became of it."""

    in_time: bool
    """Whether the job waits for so long that it has to be accepted."""


def explained_by_interruptions(job: JobOutcome, failures: int) -> int:
    """Return how often a job may have done something that it does once in an attempt."""
    return 1 + job.interrupted + max(0, job.retries - failures)


# ---- steps


def lost_steps(outcomes: Outcomes, trace: WaitTrace) -> Iterator[str]:
    """Yield what the history lost of steps and sleeps, and results that were given unstored."""
    yield from outcomes.lost_records
    for name, key in trace.kept:
        if name in outcomes.jobs and key not in outcomes.jobs[name].steps:
            yield f"{name}: the result of {key} was given and is not stored"


def doubled_steps(outcomes: Outcomes, trace: WaitTrace, failures: Counter[str]) -> Iterator[str]:
    """Yield bodies that ran after their result was stored, or more often than is explained."""
    for (name, key), attempts in trace.taken.items():
        job = outcomes.jobs.get(name)
        if job is None:
            continue
        stored = job.steps.get(key)
        late = [attempt for attempt in attempts if stored is not None and attempt > stored]
        explained = explained_by_interruptions(job, failures[name])
        if late:
            yield f"{name}: {key} was taken in attempt {late[0]}, after it was kept in {stored}"
        elif len(set(attempts)) < len(attempts):
            yield f"{name}: {key} was taken twice in one attempt"
        elif len(attempts) > explained:
            yield f"{name}: {key} was taken {len(attempts)} times, and {explained} are explained"
    for (name, key), tokens in trace.kept.items():
        if len(tokens) > 1:
            yield f"{name}: {key} had {len(tokens)} results"


# ---- signals


def lost_signals(
    signals: Iterable[SentSignal], outcomes: Outcomes, trace: WaitTrace
) -> Iterator[str]:
    """Yield signals that were not received though accepted, or refused though in time."""
    for one in signals:
        job, received = outcomes.jobs.get(one.job), trace.received.get(one.job, ())
        if one.accepted is None:
            yield f"{one.job}: no client has learnt what became of its signal"
        elif not one.accepted and one.in_time:
            yield f"{one.job}: a signal in time was refused"
        elif one.accepted and (job is None or one.name not in job.signals):
            yield f"{one.job}: a signal was accepted and is not in the job"
        elif one.accepted and one.value not in received:
            yield f"{one.job}: a signal was accepted and not received"


def doubled_signals(signals: Iterable[SentSignal], trace: WaitTrace) -> Iterator[str]:
    """Yield signals that were both received and too late, or said what nobody has sent."""
    refused = {one.job for one in signals if one.accepted is False}
    sent = {one.job: one.value for one in signals}
    for name, values in trace.received.items():
        if name in trace.late:
            yield f"{name}: its signal was received and was too late"
        elif name in refused:
            yield f"{name}: its signal was refused and received"
        elif values - {sent.get(name)}:
            yield f"{name}: its signal said {sorted(values)} where {sent.get(name)} was sent"


# ---- children


def lost_children(
    outcomes: Outcomes, trace: WaitTrace, first_effect: Mapping[str, float]
) -> Iterator[str]:
    """Yield parents that went on before a child of theirs had taken effect."""
    for name, (at, children) in trace.gathered.items():
        for one in sorted(children):
            if one not in outcomes.jobs:
                yield f"{name} waited for {one}, which is not in the history"
            elif first_effect.get(one, at + 1) > at:
                yield f"{name} went on before its child {one} had taken effect"


def doubled_children(outcomes: Outcomes, trace: WaitTrace) -> Iterator[str]:
    """Yield parents that have more children than they wait for."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for name, job in outcomes.jobs.items():
        names[job.parent].add(name)
    for name, (_, children) in trace.gathered.items():
        parent = outcomes.jobs.get(name)
        if parent is not None and (more := names[parent.uid] - children):
            yield f"{name} has children that it does not wait for: {', '.join(sorted(more))}"


# ---- arrays


def lost_items(
    accepted: Iterable[str], arrays: Iterable[JsonObject], trace: WaitTrace
) -> Iterator[str]:
    """Yield arrays that do not end well, and items that were counted wrongly or did nothing."""
    by_name = {text(child(array, "metadata"), "name"): array for array in arrays}
    for name in sorted({*accepted} - by_name.keys()):
        yield f"{name} was accepted and is gone"
    done = {(run.array, run.item) for run in trace.items}
    for name, array in by_name.items():
        status, phase = child(array, "status"), text(child(array, "status"), "phase")
        count = integer(child(child(array, "spec"), "items"), "count")
        counted = [integer(status, key) for key in ("total", "succeeded", "failed")]
        if phase != "Succeeded":
            yield f"{name} is {phase}"
        elif counted != [count, count, 0]:
            yield f"{name} has {count} items, and counts {counted}: all, done, failed"
        elif missing := [item for item in range(count) if (name, item) not in done]:
            yield f"{name}: item {missing[0]} was counted and has not taken effect"


def doubled_items(outcomes: Outcomes, trace: WaitTrace) -> Iterator[str]:
    """Yield items that took effect more often than interrupted attempts of chunks explain.

    An item is in another chunk only if the one before did not succeed. Of a chunk that was deleted
    while nothing was seen each attempt may have been interrupted, and the last as well.
    """
    jobs = outcomes.jobs
    chunks: defaultdict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for run, count in trace.items.items():
        chunks[run.array, run.item][run.chunk] += 1
        if count > 1:
            yield f"{run.array}: item {run.item} took effect {count} times in one attempt"
    for (array, item), runs in chunks.items():
        done = [one for one in runs if one in jobs and jobs[one].phase == "Succeeded"]
        if len(done) > 1:
            yield f"{array}: item {item} was in several chunks that succeeded: {', '.join(done)}"
        for chunk, count in runs.items():
            if chunk in jobs and count > explained_by_interruptions(jobs[chunk], failures=0):
                yield f"{array}: item {item} took effect {count} times in {chunk}"
