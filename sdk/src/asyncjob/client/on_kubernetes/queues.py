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
from asyncjob.json_types import Json, JsonObject, items
from asyncjob.names import API_VERSION, QUEUE_KIND, QUEUES, collection, queue_path
from asyncjob.rest.surroundings import QueueInfo, WorkerInfo
from asyncjob.rest.surroundings_reading import queue_of

_NAMES: Final = [column.name for column in JOB_COLUMNS]
_PHASE: Final = _NAMES.index(PHASE) + 1  # the name comes first
_QUEUE: Final = _NAMES.index(QUEUE) + 1

Counts = Mapping[str, Mapping[str, int]]
"""Queue → phase → jobs."""


def queues(namespace: str, now: datetime, patience: float) -> Steps[list[QueueInfo]]:
    """Return all queues by name. What no AsyncQueue counts is counted here, as a table."""
    path = collection(namespace, QUEUES)
    known = yield from read_all(path, (), patience, queue_of)
    workers = yield from live_workers(namespace, now, patience)
    counts = yield from _count(namespace, (), patience)
    names = {queue.name for queue in known}
    others = ({*counts} | {worker.queue for worker in workers}) - names
    found = [*known, *(bare(namespace, name, counts, workers) for name in others)]
    return sorted(found, key=lambda queue: queue.name)


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
    mine = [worker for worker in workers if worker.queue == name]
    return QueueInfo(
        name=name,
        namespace=namespace,
        configured=False,
        counts=dict(counts.get(name, {})),
        workers=len(mine),
        slots=sum(worker.slots for worker in mine),
    )


def _count(namespace: str, params: tuple[tuple[str, str], ...], patience: float) -> Steps[Counts]:
    rows = yield from read_all(
        jobs(namespace),
        (("includeObject", "None"), *params),
        patience,
        lambda row: items(row, "cells"),
        kind="rows",
        accept=TABLE,
    )
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for cells in rows:
        counts[str(cells[_QUEUE])][str(cells[_PHASE])] += 1
    return counts


def _path(namespace: str, name: str) -> str:
    return queue_path(namespace, checked(name, errors.QueueNotFoundError))
