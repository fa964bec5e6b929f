"""What a decision about one array depends on, and what it consists of.

It consists of at most one effect, and of when to evaluate the array again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.observed import ChunkJob, ObservedArray
from asyncjob.lifecycle.arrays.state import ArrayState, OpenChunkEntry
from asyncjob_operator.core.arrays.progress import CountSample
from asyncjob_operator.core.decision import CancelCascades, Precondition
from asyncjob_operator.core.dependencies import RelatedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class ArraySnapshot(ObservedArray):
    """What a decision about an array depends on; times are this replica's monotonic seconds."""

    identity: str
    """Identity of this operator, as it makes itself the writer."""

    writer_since: float
    """When it first saw the current writer and its claim."""

    claimed_at: float | None = None
    """When it sent the write that made it the writer; None if it is not."""

    written_at: float | None = None
    """When it last sent a write of this array's status."""

    samples: Sequence[CountSample] = ()
    """How many items had been run when, the oldest first."""

    has_open_parent: bool = False
    """Whether an unfinished job has submitted it, which may ask how it ended."""

    cancelled_with: RelatedJob | None = None
    """The job with which it is to be cancelled: one that has submitted it, or that it waits for."""

    recheck_at: float | None = None
    """When time alone may let it start, or fail it, or lets it tell that no worker takes it."""

    start_precondition: Precondition | None = None
    """What live reads must confirm before it is started, or is failed for a dependency."""

    is_needed: bool = False
    """Whether something that has not started yet depends on it."""

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

    precondition: Precondition | None = None
    """What live reads must confirm before it is written."""


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
class CancelArray:
    """Set `cancel` on the array, as on each child of its parent and all that waits for a job."""

    precondition: CancelCascades


@dataclass(frozen=True, slots=True)
class DeleteArray:
    """Delete the array, whose time is up."""


ArrayEffect: TypeAlias = (
    WriteArrayStatus
    | CreateChunks
    | ReadChunks
    | ControlChunks
    | DeleteChunks
    | CancelArray
    | DeleteArray
)


@dataclass(frozen=True, slots=True)
class ArrayDecision:
    """The one effect due now, if any, and when to decide again if nothing changes."""

    effect: ArrayEffect | None = None
    requeue_at: float | None = None
