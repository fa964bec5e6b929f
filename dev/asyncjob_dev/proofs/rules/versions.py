"""Two versions of a job or an array, field by field, in the words of promises."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

import z3

from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_dev.proofs.rules.symbols import (
    TRUE,
    Amount,
    Bool,
    Choice,
    Code,
    Entry,
    Number,
    Record,
    Sequence,
    Truth,
    all_of,
    any_of,
    is_same,
    is_same_entry,
    is_text,
    negation,
)

MAX_HISTORY: Final = 20
FINISHED: Final = (Phase.SUCCEEDED, Phase.DEAD_LETTER, Phase.CANCELLED)
WAITING: Final = (Phase.QUEUED, Phase.PENDING, Phase.SCHEDULED, Phase.RETRYING)
COUNTERS: Final = ("retries", "crashes", "releases", "parks")


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A version of a job or an array, read by paths such as `status.lease.holder`."""

    value: Record

    def entry(self, path: str) -> Entry:
        """Return a field, present only if all objects that it is in are."""
        record, present, found = self.value, TRUE, None
        for name in path.split("."):
            found = record.fields[name]
            present = all_of(present, found.present)
            record = found.value if isinstance(found.value, Record) else record
        assert found is not None
        return Entry(present, found.value)

    def has(self, *paths: str) -> Bool:
        """Return that all of them are present."""
        return all_of(*(self.entry(path).present for path in paths))

    def has_none(self, *paths: str) -> Bool:
        """Return that none of them is."""
        return all_of(*(negation(self.entry(path).present) for path in paths))

    def flag(self, path: str) -> Bool:
        """Return that it is there, and true."""
        entry = self.entry(path)
        return all_of(entry.present, cast("Truth", entry.value).is_true)

    def number(self, path: str) -> Number:
        """Return the number, 0 if there is none."""
        entry = self.entry(path)
        number = cast("Amount", entry.value).number
        return cast("Number", z3.If(entry.present, number, 0))

    def text(self, path: str, *values: str) -> Bool:
        """Return that it is one of these texts."""
        entry = self.entry(path)
        said = cast("Choice | Code", entry.value)
        return all_of(entry.present, any_of(*(is_text(said, value) for value in values)))

    def phase(self, *phases: Phase | ArrayPhase) -> Bool:
        """Return that it is in one of these phases."""
        return self.text("status.phase", *phases)

    def reason(self, *reasons: Reason) -> Bool:
        """Return that the phase has one of these reasons."""
        return self.text("status.reason", *reasons)

    @property
    def history(self) -> Sequence:
        """The history; empty if there is none."""
        entry = self.entry("status.history")
        kept = cast("Sequence", entry.value)
        return Sequence(cast("Number", z3.If(entry.present, kept.size, 0)), kept.entries)

    @property
    def gated(self) -> Bool:
        """Whether its spec makes it wait for the operator."""
        depends = self.entry("spec.dependsOn")
        some = all_of(depends.present, cast("Bool", cast("Sequence", depends.value).size > 0))
        names = ("notBefore", "notAfter", "deduplicationId")
        return any_of(some, *(self.has(f"spec.{name}") for name in names))


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A version, the next, and what is known of who has written it."""

    was: Seen
    now: Seen
    pod: Code
    pod_uid: Code
    operates: Bool
    is_worker: Bool

    def kept(self, *paths: str) -> Bool:
        """Return that these fields are as they were."""
        return all_of(*(is_same_entry(self.was.entry(p), self.now.entry(p)) for p in paths))

    @property
    def kept_phase(self) -> Bool:
        """Whether the phase is as it was."""
        return self.kept("status.phase")

    @property
    def claimed(self) -> Bool:
        """Whether a worker has taken the job."""
        return all_of(negation(self.kept_phase), self.now.phase(Phase.RUNNING))

    @property
    def ended(self) -> Bool:
        """Whether an attempt has ended."""
        return all_of(negation(self.kept_phase), self.was.phase(Phase.RUNNING))

    @property
    def redriven(self) -> Bool:
        """Whether a dead letter has been queued again."""
        return all_of(self.was.phase(Phase.DEAD_LETTER), self.now.phase(Phase.QUEUED))

    def grown(self, counter: str) -> Bool:
        """Return that a counter is greater than it was."""
        path = f"status.{counter}"
        return cast("Bool", self.now.number(path) > self.was.number(path))

    def is_pod_of(self, version: Seen) -> Bool:
        """Return that the writer is the pod that holds the lease of this version."""
        named = all_of(negation(is_text(self.pod, "")), negation(is_text(self.pod_uid, "")))
        holder, uid = version.entry("status.lease.holder"), version.entry("status.lease.holderUID")
        return all_of(
            named, holder.present, is_same(holder.value, self.pod), is_same(uid.value, self.pod_uid)
        )

    @property
    def works(self) -> Bool:
        """Whether the account is a worker's: so named, or without the right to operate."""
        return any_of(self.is_worker, negation(self.operates))


StateFormula = Callable[[Seen], Bool]
StepFormula = Callable[[Step], Bool]


@dataclass(frozen=True)
class Promise:
    """A sentence and its formula, of a state or of a step."""

    sentence: str
    of_state: StateFormula | None = None
    of_step: StepFormula | None = None
