"""Queues, with an AsyncQueue or only with jobs or workers; and workers, by their Leases."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from asyncjob.client import errors
from asyncjob.client.kubernetes.calls import (
    TABLE_CONTENT_TYPE,
    jobs_path,
    list_all,
    merge_patch_call,
)
from asyncjob.client.options import check_name
from asyncjob.client.steps import Call, Steps, call_with_retries
from asyncjob.columns import JOB_COLUMNS, PHASE, QUEUE
from asyncjob.errors import AlreadyExistsError, ObjectNotFoundError
from asyncjob.json_types import Json, JsonObject, child, items, text
from asyncjob.names import (
    API_VERSION,
    COMPONENT_LABEL,
    QUEUE_KIND,
    QUEUES,
    WORKER_COMPONENT,
    collection_path,
    queue_path,
)
from asyncjob.rest.resources import QueueInfo, WorkerInfo, is_lease_expired, queue_of, worker_of

_WORKER_LEASES: Final = (("labelSelector", f"{COMPONENT_LABEL}={WORKER_COMPONENT}"),)
_RUNNING_JOBS: Final = (("fieldSelector", "status.phase=Running"),)


def list_workers(namespace: str | None, now: datetime, patience: float) -> Steps[list[WorkerInfo]]:
    """Return the live workers by name, each with how many jobs it runs; namespace None: of all."""
    holders = yield from list_all(jobs_path(namespace), _RUNNING_JOBS, patience, _holder_of)
    running = Counter(holders)
    live = yield from list_live_workers(namespace, now, patience)
    counted = (one.model_copy(update={"running": running[one.namespace, one.pod]}) for one in live)
    return sorted(counted, key=lambda worker: (worker.namespace, worker.name))


def list_live_workers(
    namespace: str | None, now: datetime, patience: float
) -> Steps[list[WorkerInfo]]:
    """Return the workers that are not silent by the caller's clock."""

    def keep(lease: JsonObject) -> WorkerInfo | None:
        return None if is_lease_expired(lease, now) else worker_of(lease)

    scope = f"/namespaces/{namespace}" if namespace else ""
    path = f"/apis/coordination.k8s.io/v1{scope}/leases"
    return (yield from list_all(path, _WORKER_LEASES, patience, keep))


def _holder_of(job: JsonObject) -> tuple[str, str]:
    holder = text(child(child(job, "status"), "lease"), "holder")
    return text(child(job, "metadata"), "namespace"), holder


_COLUMN_NAMES: Final = [column.name for column in JOB_COLUMNS]
_PHASE_CELL: Final = _COLUMN_NAMES.index(PHASE) + 1  # the name comes first
_QUEUE_CELL: Final = _COLUMN_NAMES.index(QUEUE) + 1

PhaseCounts = Mapping[tuple[str, str], Mapping[str, int]]
"""Namespace and queue → phase → jobs."""


def list_queues(namespace: str | None, now: datetime, patience: float) -> Steps[list[QueueInfo]]:
    """Return all queues by name; namespace None: of all namespaces, one after the other.

    What no AsyncQueue counts is counted here, as a table.
    """
    path = collection_path(namespace, QUEUES)
    known = yield from list_all(path, (), patience, queue_of)
    workers = yield from list_live_workers(namespace, now, patience)
    counts = yield from _count_jobs(namespace, (), patience)
    served = {(worker.namespace, worker.queue) for worker in workers}
    others = ({*counts} | served) - {(queue.namespace, queue.name) for queue in known}
    found = [*known, *(queue_without_object(*one, counts, workers) for one in others)]
    return sorted(found, key=lambda queue: (queue.namespace, queue.name))


def get_queue(namespace: str, name: str, now: datetime, patience: float) -> Steps[QueueInfo]:
    """Return one queue; one without an AsyncQueue is open and unlimited."""
    try:
        return queue_of(
            (
                yield from call_with_retries(Call("GET", _queue_path(namespace, name)), patience)
            ).object
        )
    except ObjectNotFoundError:
        workers = yield from list_live_workers(namespace, now, patience)
        counts = yield from _count_jobs(
            namespace, (("fieldSelector", f"spec.queue={name}"),), patience
        )
        return queue_without_object(namespace, name, counts, workers)


def set_paused(
    namespace: str, name: str, now: datetime, patience: float, *, paused: bool
) -> Steps[QueueInfo]:
    """Pause or resume; only a pause creates the AsyncQueue where there is none."""
    body: dict[str, Json] = {"spec": {"paused": paused}}
    change = merge_patch_call(_queue_path(namespace, name), body)
    try:
        return queue_of((yield from call_with_retries(change, patience)).object)
    except ObjectNotFoundError:
        if not paused:
            return (yield from get_queue(namespace, name, now, patience))
    made: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": QUEUE_KIND,
        "metadata": {"name": name, "namespace": namespace},
        **body,
    }
    try:
        call = Call("POST", collection_path(namespace, QUEUES), body=made)
        return queue_of((yield from call_with_retries(call, patience)).object)
    except AlreadyExistsError:
        return queue_of((yield from call_with_retries(change, patience)).object)


def queue_without_object(
    namespace: str, name: str, counts: PhaseCounts, workers: Sequence[WorkerInfo]
) -> QueueInfo:
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


def _count_jobs(
    namespace: str | None, params: tuple[tuple[str, str], ...], patience: float
) -> Steps[PhaseCounts]:
    # Only the metadata says which of several namespaces a row is of.
    included = "None" if namespace else "Metadata"
    rows = yield from list_all(
        jobs_path(namespace),
        (("includeObject", included), *params),
        patience,
        lambda row: _read_row(row, namespace),
        items_key="rows",
        accept=TABLE_CONTENT_TYPE,
    )
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for place, queue, phase in rows:
        counts[place, queue][phase] += 1
    return counts


def _read_row(row: JsonObject, namespace: str | None) -> tuple[str, str, str]:
    cells = items(row, "cells")
    place = namespace or text(child(child(row, "object"), "metadata"), "namespace")
    return place, str(cells[_QUEUE_CELL]), str(cells[_PHASE_CELL])


def _queue_path(namespace: str, name: str) -> str:
    return queue_path(namespace, check_name(name, errors.QueueNotFoundError))
