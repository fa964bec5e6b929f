"""Whether anything was lost, was held twice or took effect twice in a cell."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self

from asyncjob.audit.checker import HistoryReport
from asyncjob.json_types import JsonObject, child, text
from asyncjob_chaos.judging import waits
from asyncjob_chaos.judging.outcomes import ENDS, Outcomes
from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.judging.trace import HandlerTrace
from asyncjob_chaos.judging.waits import SentSignal, explained_by_interruptions

ANY_END: Final = ENDS
SUCCESS: Final = frozenset({"Succeeded"})


@dataclass(frozen=True, slots=True)
class Accepted:
    """A job or an array that a client was told is accepted. Monotonic seconds."""

    name: str
    key: str
    """The idempotency key that it was submitted with; of an array its name."""

    at: float
    ends: frozenset[str] = SUCCESS
    """The phases in which it may end."""


@dataclass(frozen=True, slots=True)
class CellTimes:
    """When the fault was over, on both clocks."""

    healed: float = 0.0
    healed_epoch: float = 0.0


@dataclass(slots=True)
class Verdict:
    """One line of the table."""

    cell: str
    jobs: int = 0
    lost: list[str] = field(default_factory=list)
    """In words, each job that was accepted and did not end as it should."""

    doubled: list[str] = field(default_factory=list)
    """In words, what happened twice that happens once."""

    broken: dict[str, int] = field(default_factory=dict)
    """Violations by rule of the audit."""

    messages: list[str] = field(default_factory=list)
    """The first violations in words."""

    repeated: int = 0
    recovered: float | None = None
    """Seconds from the end of the fault until all jobs accepted before it had ended."""

    pickup_p99: float | None = None
    """Seconds from acceptance to handler, of the jobs accepted after the fault; the 99th of 100."""

    signs: Counter[Sign] = field(default_factory=Counter)
    missing: list[Sign] = field(default_factory=list)
    """What the fault was meant to show, and did not."""

    left_out: str = ""
    """Why the cell could not be run here."""

    failed: str = ""
    """Why the cell did not come to its end."""

    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the promise was kept, and the fault took place."""
        return not (self.lost or self.doubled or self.broken or self.missing or self.failed)

    def to_json(self) -> dict[str, Any]:
        """Return all of it."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "signs": {str(sign): count for sign, count in self.signs.items()}}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return what `to_json` has made."""
        signs = Counter({Sign(sign): count for sign, count in stored["signs"].items()})
        missing = [Sign(sign) for sign in stored["missing"]]
        return cls(**{**stored, "signs": signs, "missing": missing})


@dataclass(frozen=True, slots=True)
class CellRecord:
    """What a cell has left behind."""

    accepted: Sequence[Accepted]
    outcomes: Outcomes
    trace: HandlerTrace
    report: HistoryReport
    times: CellTimes = CellTimes()
    signals: Sequence[SentSignal] = ()
    accepted_arrays: Sequence[Accepted] = ()
    arrays: Sequence[JsonObject] = ()
    """All arrays, as they are at the end."""


def judge(cell: str, found: CellRecord) -> Verdict:
    """Return the verdict on one cell."""
    accepted, outcomes, trace = found.accepted, found.outcomes, found.trace
    verdict = Verdict(cell, jobs=len(outcomes.jobs.keys() | {one.name for one in accepted}))
    verdict.lost = [*_lost(accepted, outcomes, trace), *_lost_in_waits(found)]
    verdict.doubled = [*_second_jobs(accepted), *_second_handlers(trace)]
    verdict.doubled += [*_second_effects(outcomes, trace), *_doubled_in_waits(found)]
    verdict.broken = dict(found.report.counts)
    verdict.messages = [
        f"{one.rule.id}: {one.subject.name}: {one.message}" for one in found.report.violations
    ]
    verdict.repeated = trace.repeated
    verdict.recovered = _recovered(found)
    verdict.pickup_p99 = percentile(_pickups(accepted, trace, found.times.healed), 0.99)
    return verdict


def _lost(accepted: Iterable[Accepted], outcomes: Outcomes, trace: HandlerTrace) -> Iterable[str]:
    expected: Mapping[str, frozenset[str]] = {one.name: one.ends for one in accepted}
    effects = trace.effects_by_job
    for name in sorted(expected.keys() - outcomes.jobs.keys()):
        yield f"{name} was accepted and is not in the history"
    for name, job in outcomes.jobs.items():
        ends = expected.get(name, ANY_END)  # the answer that accepted it may be lost
        if job.phase not in ENDS:
            yield f"{name} is {job.phase} and does not end"
        elif job.phase not in ends:
            yield f"{name} ended as {job.phase}"
        elif job.phase == "Succeeded" and not effects[name] and not job.array:
            yield f"{name} succeeded without its effect"


def _second_jobs(accepted: Iterable[Accepted]) -> Iterable[str]:
    names: defaultdict[str, set[str]] = defaultdict(set)
    for one in accepted:
        names[one.key].add(one.name)
    for key, several in names.items():
        if len(several) > 1:
            yield f"key {key} has {len(several)} jobs: {', '.join(sorted(several))}"


def _second_handlers(trace: HandlerTrace) -> Iterable[str]:
    for (name, attempt), count in trace.entries.items():
        if count > 1:
            yield f"{name}: {count} handlers ran for attempt {attempt}"
    for (name, attempt), count in trace.effects.items():
        if count > 1:
            yield f"{name}: attempt {attempt} took effect {count} times"


def _second_effects(outcomes: Outcomes, trace: HandlerTrace) -> Iterable[str]:
    """Yield effects that no interrupted attempt explains: a job is done at least once."""
    effects = trace.effects_by_job
    for name, job in outcomes.jobs.items():
        if job.successes > 1:
            yield f"{name} succeeded {job.successes} times"
        explained = explained_by_interruptions(job, trace.failures[name])
        if effects[name] > explained:
            yield f"{name} took effect {effects[name]} times, and {explained} are explained"


def _lost_in_waits(found: CellRecord) -> Iterable[str]:
    outcomes, trace = found.outcomes, found.trace
    yield from waits.lost_steps(outcomes, trace.waits)
    yield from waits.lost_signals(found.signals, outcomes, trace.waits)
    yield from waits.lost_children(outcomes, trace.waits, trace.first_effect)
    names = [one.name for one in found.accepted_arrays]
    yield from waits.lost_items(names, found.arrays, trace.waits)


def _doubled_in_waits(found: CellRecord) -> Iterable[str]:
    outcomes, trace = found.outcomes, found.trace
    yield from waits.doubled_steps(outcomes, trace.waits, trace.failures)
    yield from waits.doubled_signals(found.signals, trace.waits)
    yield from waits.doubled_children(outcomes, trace.waits)
    yield from waits.doubled_items(outcomes, trace.waits)


def _recovered(found: CellRecord) -> float | None:
    jobs, healed = found.outcomes.jobs, found.times.healed
    before = [one.name for one in found.accepted if one.at <= healed]
    arrays = {one.name for one in found.accepted_arrays if one.at <= healed}
    uids = {
        text(child(one, "metadata"), "uid")
        for one in found.arrays
        if text(child(one, "metadata"), "name") in arrays
    }
    before += [name for name, job in jobs.items() if job.array in uids]
    ended = [
        datetime.fromisoformat(jobs[name].ended).timestamp()
        for name in before
        if name in jobs and jobs[name].ended
    ]
    if not ended or len(ended) < len(before):
        return None
    return max(0.0, max(ended) - found.times.healed_epoch)


def _pickups(accepted: Iterable[Accepted], trace: HandlerTrace, since: float) -> list[float]:
    return [
        max(0.0, trace.first_entry[one.name] - one.at)
        for one in accepted
        if one.at > since and one.name in trace.first_entry and one.ends == SUCCESS
    ]


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the value that this share of them does not exceed."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def missing_in_matrix(verdicts: Iterable[Verdict], wanted: Iterable[Sign]) -> list[Sign]:
    """Return what no cell has seen."""
    seen: Counter[Sign] = Counter()
    for verdict in verdicts:
        seen += verdict.signs
    return [sign for sign in wanted if not seen[sign]]
