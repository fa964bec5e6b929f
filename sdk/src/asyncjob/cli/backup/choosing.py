"""What belongs to certain queues: their jobs, the schedules of these, the queues themselves."""

from collections.abc import Collection

from asyncjob.json_types import JsonObject, child, text
from asyncjob.names import CRON_JOB_KIND, DEFAULT_QUEUE, QUEUE_KIND


def in_queues(obj: JsonObject, kind: str, queues: Collection[str]) -> bool:
    """Return whether the object is asked for; no `queues`: all are."""
    return not queues or queue_of(obj, kind) in queues


def queue_of(obj: JsonObject, kind: str) -> str:
    """Return the queue that an object belongs to."""
    if kind == QUEUE_KIND:
        return text(child(obj, "metadata"), "name")
    spec = child(obj, "spec")
    if kind == CRON_JOB_KIND:
        spec = child(child(spec, "jobTemplate"), "spec")
    return text(spec, "queue", DEFAULT_QUEUE)
