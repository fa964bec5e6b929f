"""Which queued jobs one watch of a worker is about, and what that says of who else knows them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from asyncjob.lifecycle.phases import Phase
from asyncjob.shards import in_no_shard, in_shards


class Source(Enum):
    """By which watch a worker of many knows a job. It decides how long others are given."""

    OWN = "own"
    DEPUTY = "deputy"
    PRIORITY = "priority"
    """Every worker is told of jobs with a priority, so that they overtake the others anywhere."""

    NO_SHARD = "no-shard"
    """The label is missing, or names no shard."""

    FOREIGN = "foreign"
    """Found by a look at what others watch."""


@dataclass(frozen=True, slots=True)
class JobSelection:
    """The jobs of a watch: all queued ones of a queue, or those that come from one source.

    The selections that a worker has at a time do not overlap, but for looks.
    """

    queue: str
    source: Source | None = None
    shards: frozenset[int] = frozenset()
    """For OWN, DEPUTY and FOREIGN; a look at none is one at the jobs without a shard."""

    def params(self) -> Mapping[str, str]:
        """Return the query."""
        fields = f"status.phase={Phase.QUEUED},spec.queue={self.queue}"
        if self.source is None:
            return {"fieldSelector": fields}
        if self.source is Source.PRIORITY:
            return {"fieldSelector": f"{fields},spec.priority!=0"}
        labels = in_shards(self.shards) if self.shards else in_no_shard()
        return {"fieldSelector": f"{fields},spec.priority=0", "labelSelector": labels}
