"""What is kept in memory of an export.

A record per object with just enough to decide on it, and the counts for summaries. The object
itself is read again when it is created.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from asyncjob.cli.backup.export_file import PLURALS, STDOUT
from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES, ArrayPhase
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.names import ARRAY_KIND, CRON_JOB_KIND, DEFAULT_QUEUE, JOB_KIND, QUEUE_KIND


def in_queues(obj: JsonObject, kind: str, queues: Collection[str]) -> bool:
    """Return whether the object is asked for; no `queues`: all are."""
    return not queues or queue_of(obj, kind) in queues


def queue_of(obj: JsonObject, kind: str) -> str:
    """Return the queue that an object belongs to."""
    if kind == QUEUE_KIND:
        return text(child(obj, "metadata"), "name")
    spec = child(obj, "spec")
    if kind == CRON_JOB_KIND:
        spec = child(child(spec, "jobTemplate"), "spec")
    return text(spec, "queue", DEFAULT_QUEUE)


class ObjectKey(NamedTuple):
    """What an object is told by."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class ExportRecord:
    """One object. `offset` is where its line begins, in bytes; `location` is for people.

    `phase` is of jobs, `array_phase` of arrays, `redriving` of dead letters and failed arrays.
    `parent` is the UID of the job that submitted this one; `started` says that it has run before,
    `in_array` that it is a chunk.
    """

    key: ObjectKey
    location: str
    offset: int
    uid: str = ""
    created_at: str = ""
    queue: str = ""
    phase: Phase | None = None
    array_phase: ArrayPhase | None = None
    redriving: bool = False
    deleting: bool = False
    started: bool = False
    has_checkpoint: bool = False
    parent: str = ""
    in_array: bool = False
    rerun_requested: bool = False

    @property
    def is_done(self) -> bool:
        """Return whether nothing is left to do: a dead letter may have been asked to go on."""
        ended = self.phase in FINISHED_PHASES or self.array_phase in ENDED_ARRAY_PHASES
        return ended and not self.redriving

    @property
    def is_dead_letter(self) -> bool:
        """Return whether a person may have it go on: a dead letter, or an array that has failed."""
        return self.phase is Phase.DEAD_LETTER or self.array_phase is ArrayPhase.FAILED


@dataclass(frozen=True)
class ExportContents:
    """All that a file holds, in its order."""

    name: str
    records: tuple[ExportRecord, ...] = field(default=())

    @cached_property
    def by_key(self) -> dict[ObjectKey, ExportRecord]:
        """Return the records by what they are told by."""
        return {one.key: one for one in self.records}

    @cached_property
    def by_uid(self) -> dict[str, ExportRecord]:
        """Return the records by UID."""
        return {one.uid: one for one in self.records if one.uid}

    @cached_property
    def children(self) -> dict[str, list[ExportRecord]]:
        """Return the child jobs by the UID of their parent."""
        found: dict[str, list[ExportRecord]] = {}
        for one in self.records:
            if one.parent and one.key.kind == JOB_KIND:
                found.setdefault(one.parent, []).append(one)
        return found

    @property
    def namespaces(self) -> list[str]:
        """Return the namespaces, each once."""
        return list(dict.fromkeys(one.key.namespace for one in self.records))


_NOUNS: Final[Mapping[str, str]] = {
    QUEUE_KIND: "queue",
    CRON_JOB_KIND: "cron job",
    ARRAY_KIND: "array",
    JOB_KIND: "job",
}


def quantity(count: int, noun: str) -> str:
    """Return `1 job`, `2 jobs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def count_by_kind(counts: Mapping[str, int]) -> str:
    """Return `1 queue, 2 cron jobs and 3 jobs`, without what there is nothing of."""
    parts = [quantity(counts[kind], _NOUNS[kind]) for kind in PLURALS if counts.get(kind)]
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]])) or "nothing"


def export_summary(
    counts: Mapping[str, int], phases: Mapping[str, int], namespace: str | None, target: str
) -> str:
    """Return what was exported, and where it is."""
    of_phases = ", ".join(f"{phases[one]} {one}" for one in Phase if phases.get(one))
    where = f"namespace {namespace}" if namespace else "all namespaces"
    into = "" if target == STDOUT else f" into {target}"
    detail = f" ({of_phases})" if of_phases else ""
    return f"exported {count_by_kind(counts)}{detail} of {where}{into}"
