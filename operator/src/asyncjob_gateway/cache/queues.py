"""Queues as they are now: what AsyncQueues say, jobs counted here, workers by their Leases. Pure.

A queue without an AsyncQueue object appears, too, if it has jobs or workers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.surroundings import QueueInfo, WorkerInfo
from asyncjob.rest.surroundings_reading import is_silent, queue_of, worker_of

Counts = Mapping[tuple[str, Phase], int]


def queues(
    namespace: str, objects: Iterable[JsonObject], counts: Counts, workers: Sequence[WorkerInfo]
) -> list[QueueInfo]:
    """Return all queues by name."""
    known = {info.name: info for info in map(queue_of, objects)}
    names = {*known, *(queue for (queue, _), count in counts.items() if count)}
    names |= {worker.queue for worker in workers}
    return [
        _with_counts(known.get(name) or bare(namespace, name), counts, workers)
        for name in sorted(names)
    ]


def queue(
    namespace: str,
    name: str,
    obj: JsonObject | None,
    counts: Counts,
    workers: Sequence[WorkerInfo],
) -> QueueInfo:
    """Return one queue; one that nobody knows is open, unlimited and empty."""
    info = queue_of(obj) if obj else bare(namespace, name)
    return _with_counts(info, counts, workers)


def workers(leases: Iterable[JsonObject], running: Counter[str], now: datetime) -> list[WorkerInfo]:
    """Return the workers that are not silent; `running` counts jobs by pod."""
    live = [worker_of(lease) for lease in leases if not is_silent(lease, now)]
    counted = [one.model_copy(update={"running": running[one.pod]}) for one in live]
    return sorted(counted, key=lambda one: (one.queue, one.pod))


def bare(namespace: str, name: str) -> QueueInfo:
    """Return a queue without an AsyncQueue."""
    return QueueInfo(name=name, namespace=namespace, configured=False)


def _with_counts(info: QueueInfo, counts: Counts, workers: Sequence[WorkerInfo]) -> QueueInfo:
    serving = [worker for worker in workers if worker.queue == info.name]
    counted = {phase.value: counts.get((info.name, phase), 0) for phase in Phase}
    running = counted[Phase.RUNNING.value]
    return info.model_copy(
        update={
            "counts": {phase: count for phase, count in counted.items() if count},
            "workers": len(serving),
            "slots": sum(worker.slots for worker in serving),
            "drained": info.paused and not running,
        }
    )
