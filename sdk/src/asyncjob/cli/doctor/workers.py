"""Whether there is a worker for each job, by queue and by type. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from asyncjob import __version__
from asyncjob.cli.doctor.finding import Finding, join_some, ok, problem, warning
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import JobSummary
from asyncjob.rest.surroundings import QueueInfo, WorkerInfo

WORKERS_CHECK: Final = "Workers"
JOB_TYPES_CHECK: Final = "Job types"


def check_workers(
    workers: Sequence[WorkerInfo], queues: Sequence[QueueInfo], waiting: Sequence[JobSummary]
) -> list[Finding]:
    """Return which queues have jobs and no workers, and which types nobody knows."""
    found = [*_unserved_queues(workers, queues), *_paused_queues(queues), *_other_versions(workers)]
    types = list(_unserved_types(workers, waiting))
    return [*_live_workers(workers), *found, *(types or _all_types_served(waiting))]


def _live_workers(workers: Sequence[WorkerInfo]) -> list[Finding]:
    if not workers:
        way = "start some: asyncjob-worker run module:app --queue QUEUE"
        return [warning(WORKERS_CHECK, "none is live: no job will start", way)]
    by_queue = Counter(one.queue for one in workers)
    slots: Counter[str] = Counter()
    for one in workers:
        slots[one.queue] += one.slots
    said = [f"{queue}: {n} with {slots[queue]} slots" for queue, n in sorted(by_queue.items())]
    return [ok(WORKERS_CHECK, "; ".join(said))]


def _unserved_queues(
    workers: Sequence[WorkerInfo], queues: Sequence[QueueInfo]
) -> Iterator[Finding]:
    served = {one.queue for one in workers}
    for queue in queues:
        queued = queue.counts.get(Phase.QUEUED, 0)
        if queued and queue.name not in served:
            said = f"queue {queue.name} has {queued} queued jobs and no worker"
            yield problem(
                WORKERS_CHECK, said, f"start one: asyncjob-worker run … --queue {queue.name}"
            )


def _paused_queues(queues: Sequence[QueueInfo]) -> Iterator[Finding]:
    for queue in queues:
        if queue.paused:
            said = f"queue {queue.name} is paused"
            yield warning(WORKERS_CHECK, said, f"asyncjob queue resume {queue.name}")


def _other_versions(workers: Sequence[WorkerInfo]) -> Iterator[Finding]:
    others = sorted({one.version for one in workers if one.version} - {__version__})
    if others:
        said = f"some run asyncjob {join_some(others)}, this is {__version__}"
        yield warning(
            WORKERS_CHECK, said, "roll them out anew, or use the command line of their release"
        )


def _unserved_types(
    workers: Sequence[WorkerInfo], waiting: Sequence[JobSummary]
) -> Iterator[Finding]:
    known = _types_by_queue(workers)
    lost: dict[tuple[str, str], list[str]] = defaultdict(list)
    for job in waiting:
        if job.queue in known and job.type not in known[job.queue]:
            lost[job.queue, job.type].append(job.id)
    for (queue, kind), names in sorted(lost.items()):
        said = f"no live worker of queue {queue} has a handler for {kind}: {join_some(names, 3)}"
        elsewhere = sorted(other for other, types in known.items() if kind in types)
        way = f"queue {join_some(elsewhere)} has: submit them there" if elsewhere else ""
        yield problem(JOB_TYPES_CHECK, said, way or "deploy the handler, or cancel the jobs")


def _types_by_queue(workers: Sequence[WorkerInfo]) -> Mapping[str, set[str]]:
    known: dict[str, set[str]] = defaultdict(set)
    for one in workers:
        known[one.queue].update(one.types)
    return known


def _all_types_served(waiting: Sequence[JobSummary]) -> list[Finding]:
    return (
        [ok(JOB_TYPES_CHECK, f"all {len(waiting)} waiting jobs have a handler")] if waiting else []
    )
