"""An array and what is known of its chunks: what it is taken forward by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from asyncjob.lifecycle.arrays.chunks import ChunkReport
from asyncjob.lifecycle.arrays.item_index import ItemIndex
from asyncjob.lifecycle.arrays.phases import ArrayReason
from asyncjob.lifecycle.arrays.state import ArrayView, OpenChunkEntry
from asyncjob.lifecycle.phases import Phase

GONE: Final = ""
"""In place of a chunk's UID: there is none, and none will be created under its name."""


@dataclass(frozen=True, slots=True)
class ChunkJob:
    """What is kept of a chunk's job."""

    namespace: str
    name: str
    uid: str
    array: str
    """Name of the array, as its payload has it; empty if nothing can be called so."""

    phase: Phase
    finished: bool
    cancel_requested: bool
    suspended: bool
    deleting: bool


@dataclass(frozen=True, slots=True)
class ChunkRun:
    """How long a chunk has run that has ended, by the clock of its worker alone."""

    seconds: float
    """How long its last attempt took."""

    attempts: int
    limit: int | None = None
    """Time limit of an attempt, in seconds."""


@dataclass(frozen=True, slots=True)
class ChunkOutcome:
    """A chunk's job as a live read has shown it; `report` is empty unless it is finished."""

    uid: str
    finished: bool
    phase: Phase
    reason: str
    error_type: str
    error_category: str
    message: str
    report: ChunkReport = field(default_factory=ChunkReport)
    result_elsewhere: bool = False
    """Whether it has succeeded with a result that was offloaded; the report is its checkpoint."""

    index: ItemIndex | None = None
    """What an index job has found, if it has succeeded and can be understood."""

    run: ChunkRun | None = None
    """None unless it is finished, and tells its times."""


@dataclass(frozen=True, slots=True)
class ArrayGate:
    """Why an array may not start yet; with DEPENDENCY_FAILED it never will."""

    reason: ArrayReason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedArray:
    """An array and what is known of its chunks."""

    array: ArrayView
    chunks: Mapping[str, ChunkJob]
    """The jobs that bear the array's UID as a label, by name, as far as they are known."""

    created: Mapping[str, str] = field(default_factory=dict)
    """UID of each reserved chunk that has been created or found; GONE: neither."""

    outcomes: Mapping[str, ChunkOutcome | None] = field(default_factory=dict)
    """What live reads since the array was read have shown of chunks; None: there is none."""

    oversize: str = ""
    """Why its payload or items are too large to be run, if they are."""

    gate: ArrayGate | None = None
    """What keeps it from starting, if anything does; None once it has started."""

    no_worker: str = ""
    """Why nobody takes its chunks, if its queue has no worker that could."""

    def uid_of(self, entry: OpenChunkEntry) -> str | None:
        """Return the UID of a chunk's job, GONE, or None while it is not known to exist."""
        return entry.uid or self.created.get(entry.name)

    @property
    def uncreated(self) -> tuple[OpenChunkEntry, ...]:
        """Return the reserved chunks that are still to be created."""
        return tuple(entry for entry in self.array.state.open if self.uid_of(entry) is None)

    @property
    def unlisted(self) -> tuple[ChunkJob, ...]:
        """Return the chunks that the array does not list: they are counted, or never will be."""
        listed = {entry.name: self.uid_of(entry) for entry in self.array.state.open}
        return tuple(
            chunk
            for chunk in self.chunks.values()
            if chunk.name not in listed or listed[chunk.name] not in (None, chunk.uid)
        )
