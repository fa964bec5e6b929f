"""What a file holds: enough of each object to decide on it; the rest is read again when needed."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase


class ObjectKey(NamedTuple):
    """What an object is told by."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class ExportRecord:
    """One object. `offset` is where its line begins, in bytes; `where` is for people.

    `phase` is of jobs alone, `redriving` of dead letters. `parent` is the UID of the job that
    submitted this one; `begun`: it was started before.
    """

    key: ObjectKey
    location: str
    offset: int
    uid: str = ""
    created_at: str = ""
    queue: str = ""
    phase: Phase | None = None
    redriving: bool = False
    deleting: bool = False
    started: bool = False
    has_checkpoint: bool = False
    parent: str = ""
    rerun_requested: bool = False

    @property
    def is_done(self) -> bool:
        """Return whether nothing is left to do: a dead letter may have been asked to go on."""
        return self.phase in FINISHED_PHASES and not self.redriving


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
            if one.parent:
                found.setdefault(one.parent, []).append(one)
        return found

    @property
    def namespaces(self) -> list[str]:
        """Return the namespaces, each once."""
        return list(dict.fromkeys(one.key.namespace for one in self.records))
