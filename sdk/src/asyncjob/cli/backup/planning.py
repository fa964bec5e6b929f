"""Which objects come back, in which order, and why the others do not. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from asyncjob.cli.backup.contents import Contents, Record
from asyncjob.cli.backup.format import PLURALS
from asyncjob.lifecycle.phases import Phase

_ORDER = {kind: number for number, kind in enumerate(PLURALS)}


class Why(StrEnum):
    """Why an object does not come back."""

    SUCCEEDED = "Succeeded"
    CANCELLED = "Cancelled"
    DEAD_LETTER = "DeadLetter"
    CHILD = "Child"
    DELETED = "Deleted"
    OTHER_QUEUE = "OtherQueue"


WHY_DOCS: Mapping[Why, str] = {
    Why.SUCCEEDED: "succeeded",
    Why.CANCELLED: "cancelled",
    Why.DEAD_LETTER: "dead letters (--dead-letters restores them)",
    Why.CHILD: "children of jobs that come back, which submit them anew",
    Why.DELETED: "being deleted when they were exported",
    Why.OTHER_QUEUE: "of other queues",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for; no `queues`: all of them."""

    queues: Collection[str] = ()
    dead_letters: bool = False


@dataclass(frozen=True)
class Plan:
    """What comes back, in the order in which it is created, and what does not."""

    contents: Contents
    wanted: Wanted
    records: tuple[Record, ...]
    left_out: tuple[tuple[Record, Why], ...]

    @cached_property
    def restored(self) -> frozenset[Record]:
        """Return what comes back."""
        return frozenset(self.records)


def plan(contents: Contents, wanted: Wanted) -> Plan:
    """Decide on all of a file."""
    verdicts = [(one, _why_not(one, contents, wanted)) for one in contents.records]
    chosen = [one for one, why in verdicts if why is None]
    left_out = tuple((one, why) for one, why in verdicts if why is not None)
    return Plan(contents, wanted, tuple(sorted(chosen, key=_order)), left_out)


def _order(record: Record) -> tuple[int, str, str]:
    """Sort jobs by age, so that who waited longer still comes first."""
    return (_ORDER[record.key.kind], record.created, record.key.name)


def _why_not(record: Record, contents: Contents, wanted: Wanted) -> Why | None:
    alone = _alone(record, wanted)
    if alone is None and _ancestor_comes_back(record, contents, wanted):
        return Why.CHILD
    return alone


def _alone(record: Record, wanted: Wanted) -> Why | None:
    """Return why it would not come back, whatever else there is."""
    if wanted.queues and record.queue not in wanted.queues:
        return Why.OTHER_QUEUE
    if record.deleting:
        return Why.DELETED
    if record.phase is Phase.DEAD_LETTER and wanted.dead_letters:
        return None
    return Why(record.phase.value) if record.phase and record.over else None


def _ancestor_comes_back(record: Record, contents: Contents, wanted: Wanted) -> bool:
    """Return whether a job comes back that would submit this one anew.

    The name of a child follows from its parent's UID, and a restored parent has another one.
    """
    seen = {record.uid}
    parent = contents.by_uid.get(record.parent)
    while parent is not None and parent.uid not in seen:
        if _alone(parent, wanted) is None:
            return True
        seen.add(parent.uid)
        parent = contents.by_uid.get(parent.parent)
    return False
