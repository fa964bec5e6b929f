"""Queues as they are now: what AsyncQueues say, jobs counted here, workers by their Leases. Pure.

A queue without an AsyncQueue object appears, too, if it has jobs or workers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.surroundings import QueueInfo, WorkerInfo
from asyncjob.rest.surroundings_reading import is_lease_expired, queue_of, worker_of

PhaseCounts = Mapping[tuple[str, Phase], int]


def build_queues(
    namespace: str,
    objects: Iterable[JsonObject],
    counts: PhaseCounts,
    workers: Sequence[WorkerInfo],
) -> list[QueueInfo]:
    """Return all queues by name."""
    known = {info.name: info for info in map(queue_of, objects)}
    names = {*known, *(queue for (queue, _), count in counts.items() if count)}
    names |= {worker.queue for worker in workers}
    return [
        with_counts(known.get(name) or unconfigured_queue(namespace, name), counts, workers)
        for name in sorted(names)
    ]


def live_workers(
    leases: Iterable[JsonObject], running: Counter[str], now: datetime
) -> list[WorkerInfo]:
    """Return the workers that are not silent; `running` counts jobs by pod."""
    live = [worker_of(lease) for lease in leases if not is_lease_expired(lease, now)]
    found = [one.model_copy(update={"running": running[one.pod]}) for one in live]
    return sorted(found, key=lambda one: (one.queue, one.pod))


def unconfigured_queue(namespace: str, name: str) -> QueueInfo:
    """Return a queue without an AsyncQueue."""
    return QueueInfo(name=name, namespace=namespace, configured=False)


def with_counts(info: QueueInfo, counts: PhaseCounts, workers: Sequence[WorkerInfo]) -> QueueInfo:
    """Return the queue with its jobs and workers as they are known here."""
    serving = [worker for worker in workers if worker.queue == info.name]
    jobs = {phase.value: counts.get((info.name, phase), 0) for phase in Phase}
    running = jobs[Phase.RUNNING.value]
    return info.model_copy(
        update={
            "counts": {phase: count for phase, count in jobs.items() if count},
            "workers": len(serving),
            "slots": sum(worker.slots for worker in serving),
            "drained": info.paused and not running,
        }
    )
