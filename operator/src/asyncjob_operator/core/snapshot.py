"""All that one decision may look at: one job and what bears on it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.death import UNKNOWN_HOLDER, HolderStatus
from asyncjob_operator.core.decision import PolicyResult
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.options import DecisionOptions
from asyncjob_operator.core.queue_view import OPEN_QUEUE, QueueView
from asyncjob_operator.core.roll_call import UnservedType
from asyncjob_operator.core.sighting import Observation
from asyncjob_operator.core.ties import NO_DEPENDENCIES, Dependencies


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known of a job when it is decided about.

    `live_duplicate` is the first of the other live jobs with the same deduplication id, if any.
    `unserved_type` is set while no worker of the queue lists the job's type. `has_reservation`: the
    job has a place in its queue, if that has limits. `type_known`: the workers of a queue with
    limits may know its type, as far as one can tell. `refused_redrive`: the number of the redrive
    wish that was refused and said so. `rerun_retry_at`: until then a rerun that could not be
    created is left alone, monotonic.
    """

    job: JobView
    observation: Observation
    options: DecisionOptions
    queue: QueueView = OPEN_QUEUE
    holder: HolderStatus = UNKNOWN_HOLDER
    live_duplicate: JobView | None = None
    unserved_type: UnservedType | None = None
    has_reservation: bool = False
    type_known: bool = True
    dependencies: Dependencies = NO_DEPENDENCIES
    refused_redrive: int = 0
    rerun_retry_at: float = 0.0


Policy: TypeAlias = Callable[[Snapshot, Now], PolicyResult]
