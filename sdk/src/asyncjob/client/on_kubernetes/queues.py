"""Queues: those with an AsyncQueue, and those that merely have jobs or workers."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from asyncjob.client import errors
from asyncjob.client.ids import checked
from asyncjob.client.on_kubernetes.calls import TABLE, jobs, patch, read_all
from asyncjob.client.on_kubernetes.workers import live_workers
from asyncjob.client.steps import Call, Steps, patiently
from asyncjob.columns import JOB_COLUMNS, PHASE, QUEUE
from asyncjob.errors import AlreadyExistsError, NotFoundError
from asyncjob.json_types import Json, JsonObject, child, items, text
from asyncjob.names import API_VERSION, QUEUE_KIND, QUEUES, collection, queue_path
from asyncjob.rest.surroundings import QueueInfo, WorkerInfo
from asyncjob.rest.surroundings_reading import queue_of

_NAMES: Final = [column.name for column in JOB_COLUMNS]
_PHASE: Final = _NAMES.index(PHASE) + 1  # the name comes first
_QUEUE: Final = _NAMES.index(QUEUE) + 1

Counts = Mapping[tuple[str, str], Mapping[str, int]]
"""Namespace and queue → phase → jobs."""


def queues(namespace: str | None, now: datetime, patience: float) -> Steps[list[QueueInfo]]:
    """Return all queues by name; namespace None: of all namespaces, one after the other.

    What no AsyncQueue counts is counted here, as a table.
    """
    path = collection(namespace, QUEUES)
    known = yield from read_all(path, (), patience, queue_of)
    workers = yield from live_workers(namespace, now, patience)
    counts = yield from _count(namespace, (), patience)
    served = {(worker.namespace, worker.queue) for worker in workers}
    others = ({*counts} | served) - {(queue.namespace, queue.name) for queue in known}
    found = [*known, *(bare(*one, counts, workers) for one in others)]
    return sorted(found, key=lambda queue: (queue.namespace, queue.name))


def queue(namespace: str, name: str, now: datetime, patience: float) -> Steps[QueueInfo]:
    """Return one queue; one without an AsyncQueue is open and unlimited."""
    try:
        return queue_of(
            (yield from patiently(Call("GET", _path(namespace, name)), patience)).object
        )
    except NotFoundError:
        workers = yield from live_workers(namespace, now, patience)
        counts = yield from _count(namespace, (("fieldSelector", f"spec.queue={name}"),), patience)
        return bare(namespace, name, counts, workers)


def set_paused(
    namespace: str, name: str, now: datetime, patience: float, *, paused: bool
) -> Steps[QueueInfo]:
    """Pause or resume; only a pause creates the AsyncQueue where there is none."""
    body: dict[str, Json] = {"spec": {"paused": paused}}
    change = patch(_path(namespace, name), body)
    try:
        return queue_of((yield from patiently(change, patience)).object)
    except NotFoundError:
        if not paused:
            return (yield from queue(namespace, name, now, patience))
    made: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": QUEUE_KIND,
        "metadata": {"name": name, "namespace": namespace},
        **body,
    }
    try:
        call = Call("POST", collection(namespace, QUEUES), body=made)
        return queue_of((yield from patiently(call, patience)).object)
    except AlreadyExistsError:
        return queue_of((yield from patiently(change, patience)).object)


def bare(namespace: str, name: str, counts: Counts, workers: Sequence[WorkerInfo]) -> QueueInfo:
    """Return a queue without an AsyncQueue."""
    mine = [one for one in workers if (one.namespace, one.queue) == (namespace, name)]
    return QueueInfo(
        name=name,
        namespace=namespace,
        configured=False,
        counts=dict(counts.get((namespace, name), {})),
        workers=len(mine),
        slots=sum(worker.slots for worker in mine),
    )


def _count(
    namespace: str | None, params: tuple[tuple[str, str], ...], patience: float
) -> Steps[Counts]:
    # Only the metadata says which of several namespaces a row is of.
    included = "None" if namespace else "Metadata"
    rows = yield from read_all(
        jobs(namespace),
        (("includeObject", included), *params),
        patience,
        lambda row: _counted(row, namespace),
        kind="rows",
        accept=TABLE,
    )
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for place, queue, phase in rows:
        counts[place, queue][phase] += 1
    return counts


def _counted(row: JsonObject, namespace: str | None) -> tuple[str, str, str]:
    cells = items(row, "cells")
    place = namespace or text(child(child(row, "object"), "metadata"), "namespace")
    return place, str(cells[_QUEUE]), str(cells[_PHASE])


def _path(namespace: str, name: str) -> str:
    return queue_path(namespace, checked(name, errors.QueueNotFoundError))
