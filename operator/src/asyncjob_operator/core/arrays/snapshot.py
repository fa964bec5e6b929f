"""What a decision about one array depends on, and what it consists of.

It consists of at most one effect, and of when to evaluate the array again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.chunks import ChunkReport
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.arrays.view import ArrayState, ArrayView, OpenChunkEntry

GONE: Final = ""
"""In place of a chunk's UID: there is none, and none will be created under its name."""


@dataclass(frozen=True, slots=True)
class ChunkJob:
    """What is kept of a chunk's job."""

    namespace: str
    name: str
    uid: str
    array: str
    """Name of the array, as its payload has it."""

    phase: Phase
    finished: bool
    cancel_requested: bool
    suspended: bool
    deleting: bool


@dataclass(frozen=True, slots=True)
class ChunkOutcome:
    """A chunk's job as a live read has shown it; `report` is empty unless it is finished."""

    uid: str
    finished: bool
    phase: Phase
    reason: str = ""
    error_category: str = ""
    message: str = ""
    report: ChunkReport = field(default_factory=ChunkReport)
    result_elsewhere: bool = False
    """Whether it has succeeded with a result that was offloaded; the report is its checkpoint."""


@dataclass(frozen=True, slots=True)
class ArraySnapshot:
    """What a decision about an array depends on; times are this replica's monotonic seconds."""

    array: ArrayView
    chunks: Mapping[str, ChunkJob]
    """The jobs that bear the array's UID as a label, by name, as far as they are known."""

    identity: str
    """Identity of this operator, as it makes itself the writer."""

    writer_since: float
    """When it first saw the current writer and its claim."""

    claimed_at: float | None = None
    """When it sent the write that made it the writer; None if it is not."""

    written_at: float | None = None
    """When it last sent a write of this array's status."""

    created: Mapping[str, str] = field(default_factory=dict)
    """UID of each reserved chunk that this operator has created or found; GONE: it has neither."""

    outcomes: Mapping[str, ChunkOutcome | None] = field(default_factory=dict)
    """What live reads since the array was read have shown of chunks; None: there is none."""

    oversize: str = ""
    """Why its payload or items are too large to be run, if they are."""

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

    @property
    def is_writer(self) -> bool:
        """Return whether this operator is the one that creates reserved chunks."""
        return self.array.state.writer == self.identity[:256]


@dataclass(frozen=True, slots=True)
class WriteArrayStatus:
    """Change the status, conditional on the version that was decided on."""

    policy: str
    state: ArrayState
    fields: Mapping[str, Json]
    claims: bool = False
    """Whether the write makes this operator the writer, or renews that it is."""


@dataclass(frozen=True, slots=True)
class CreateChunks:
    """Create these chunks, as long as the claim lasts."""

    entries: tuple[OpenChunkEntry, ...]


@dataclass(frozen=True, slots=True)
class ReadChunks:
    """Read these chunks live, and decide again."""

    entries: tuple[OpenChunkEntry, ...]


@dataclass(frozen=True, slots=True)
class ControlChunks:
    """Set these control fields on these chunks."""

    chunks: tuple[ChunkJob, ...]
    fields: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class DeleteChunks:
    """Delete these chunks, whatever they are doing."""

    chunks: tuple[ChunkJob, ...]


@dataclass(frozen=True, slots=True)
class DeleteArray:
    """Delete the array, whose time is up."""


ArrayEffect: TypeAlias = (
    WriteArrayStatus | CreateChunks | ReadChunks | ControlChunks | DeleteChunks | DeleteArray
)


@dataclass(frozen=True, slots=True)
class ArrayDecision:
    """The one effect due now, if any, and when to decide again if nothing changes."""

    effect: ArrayEffect | None = None
    requeue_at: float | None = None


def ended_phase(phase: ArrayPhase) -> bool:
    """Return whether an array has ended; a redrive may still begin it again."""
    return phase in {ArrayPhase.SUCCEEDED, ArrayPhase.FAILED, ArrayPhase.CANCELLED}
