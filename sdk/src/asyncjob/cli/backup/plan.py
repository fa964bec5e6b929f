"""Which objects of an export are restored, in which order, and why the others are skipped. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from asyncjob.cli.backup.export_file import PLURALS
from asyncjob.cli.backup.records import ExportContents, ExportRecord
from asyncjob.lifecycle.arrays.phases import ArrayPhase

_KIND_ORDER = {kind: number for number, kind in enumerate(PLURALS)}


class SkipReason(StrEnum):
    """Why an object does not come back."""

    SUCCEEDED = "Succeeded"
    CANCELLED = "Cancelled"
    DEAD_LETTER = "DeadLetter"
    FAILED_ARRAY = "FailedArray"
    CHILD = "Child"
    CHUNK = "Chunk"
    DELETED = "Deleted"
    OTHER_QUEUE = "OtherQueue"


SKIP_REASON_DOCS: Mapping[SkipReason, str] = {
    SkipReason.SUCCEEDED: "succeeded",
    SkipReason.CANCELLED: "cancelled",
    SkipReason.DEAD_LETTER: "dead letters (--dead-letters restores them)",
    SkipReason.FAILED_ARRAY: "arrays that have failed (--dead-letters restores them)",
    SkipReason.CHILD: "children of restored jobs, which submit them again",
    SkipReason.CHUNK: "chunks of arrays, which create them again",
    SkipReason.DELETED: "being deleted when they were exported",
    SkipReason.OTHER_QUEUE: "of other queues",
}


@dataclass(frozen=True, slots=True)
class RestoreSelection:
    """What was asked for; no `queues`: all of them. `all_items`: those that are done, too."""

    queues: Collection[str] = ()
    dead_letters: bool = False
    all_items: bool = False


@dataclass(frozen=True)
class RestorePlan:
    """What comes back, in the order in which it is created, and what does not."""

    contents: ExportContents
    selection: RestoreSelection
    records: tuple[ExportRecord, ...]
    skipped: tuple[tuple[ExportRecord, SkipReason], ...]

    @cached_property
    def restored(self) -> frozenset[ExportRecord]:
        """Return what comes back."""
        return frozenset(self.records)


def build_plan(contents: ExportContents, selection: RestoreSelection) -> RestorePlan:
    """Decide on all of a file."""
    verdicts = [(one, _skip_reason(one, contents, selection)) for one in contents.records]
    chosen = [one for one, why in verdicts if why is None]
    left_out = tuple((one, why) for one, why in verdicts if why is not None)
    return RestorePlan(contents, selection, tuple(sorted(chosen, key=_sort_key)), left_out)


def _sort_key(record: ExportRecord) -> tuple[int, str, str]:
    """Sort jobs by age, so that who waited longer still comes first."""
    return (_KIND_ORDER[record.key.kind], record.created_at, record.key.name)


def _skip_reason(
    record: ExportRecord, contents: ExportContents, selection: RestoreSelection
) -> SkipReason | None:
    alone = _own_skip_reason(record, selection)
    if alone is None and _ancestor_is_restored(record, contents, selection):
        return SkipReason.CHILD
    return alone


def _own_skip_reason(record: ExportRecord, selection: RestoreSelection) -> SkipReason | None:
    """Return why it would not come back, whatever else there is."""
    if selection.queues and record.queue not in selection.queues:
        return SkipReason.OTHER_QUEUE
    if record.deleting:
        return SkipReason.DELETED
    if record.in_array:
        return SkipReason.CHUNK
    if not record.is_done or (record.is_dead_letter and selection.dead_letters):
        return None
    if record.array_phase is ArrayPhase.FAILED:
        return SkipReason.FAILED_ARRAY
    ended = record.phase or record.array_phase
    return SkipReason(ended.value) if ended else None


def _ancestor_is_restored(
    record: ExportRecord, contents: ExportContents, selection: RestoreSelection
) -> bool:
    """Return whether a job comes back that would submit this one again.

    The name of a child follows from its parent's UID, and a restored parent has another one.
    """
    seen = {record.uid}
    parent = contents.by_uid.get(record.parent)
    while parent is not None and parent.uid not in seen:
        if _own_skip_reason(parent, selection) is None:
            return True
        seen.add(parent.uid)
        parent = contents.by_uid.get(parent.parent)
    return False
