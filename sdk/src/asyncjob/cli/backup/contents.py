"""What a file holds: enough of each object to decide on it; the rest is read again when needed."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from asyncjob.lifecycle.phases import FINISHED, Phase


class Key(NamedTuple):
    """What an object is told by."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Record:
    """One object. `offset` is where its line begins, in bytes; `where` is for people.

    `phase` is of jobs alone, `redriving` of dead letters. `parent` is the UID of the job that
    submitted this one; `begun`: it was started before.
    """

    key: Key
    where: str
    offset: int
    uid: str = ""
    created: str = ""
    queue: str = ""
    phase: Phase | None = None
    redriving: bool = False
    deleting: bool = False
    begun: bool = False
    checkpoint: bool = False
    parent: str = ""
    wants_rerun: bool = False

    @property
    def over(self) -> bool:
        """Return whether nothing is left to do: a dead letter may have been asked to go on."""
        return self.phase in FINISHED and not self.redriving


@dataclass(frozen=True)
class Contents:
    """All that a file holds, in its order."""

    name: str
    records: tuple[Record, ...] = field(default=())

    @cached_property
    def by_key(self) -> dict[Key, Record]:
        """Return the records by what they are told by."""
        return {one.key: one for one in self.records}

    @cached_property
    def by_uid(self) -> dict[str, Record]:
        """Return the records by UID."""
        return {one.uid: one for one in self.records if one.uid}

    @cached_property
    def children(self) -> dict[str, list[Record]]:
        """Return the child jobs by the UID of their parent."""
        found: dict[str, list[Record]] = {}
        for one in self.records:
            if one.parent:
                found.setdefault(one.parent, []).append(one)
        return found

    @property
    def namespaces(self) -> list[str]:
        """Return the namespaces, each once."""
        return list(dict.fromkeys(one.key.namespace for one in self.records))
