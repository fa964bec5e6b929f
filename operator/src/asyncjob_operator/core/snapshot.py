"""All that one decision may look at: one job and what bears on it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.death import NOBODY, Holder
from asyncjob_operator.core.decision import Verdict
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.options import Options
from asyncjob_operator.core.queue_view import OPEN_QUEUE, QueueView
from asyncjob_operator.core.roll_call import Missing
from asyncjob_operator.core.sighting import Sighting
from asyncjob_operator.core.ties import FREE, Ties


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`rival` is the first of the other live jobs with the same deduplication id, if there are any.

    `missing` is set while no worker of the queue lists the job's type. `placed`: the job has a
    place in its queue, if that has limits. `known`: the workers of a queue with limits may know its
    type, as far as one can tell. `refused`: the number of the redrive wish that was refused and
    said so. `rerun_after`: until then a rerun that could not be created is left alone, monotonic.
    """

    job: JobView
    seen: Sighting
    options: Options
    queue: QueueView = OPEN_QUEUE
    holder: Holder = NOBODY
    rival: JobView | None = None
    missing: Missing | None = None
    placed: bool = False
    known: bool = True
    ties: Ties = FREE
    refused: int = 0
    rerun_after: float = 0.0


Policy: TypeAlias = Callable[[Snapshot, Moment], Verdict]
