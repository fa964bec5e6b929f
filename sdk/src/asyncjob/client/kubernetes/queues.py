"""Queues, with an AsyncQueue or only with jobs or workers; and workers, by their Leases."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from asyncjob.client import errors
from asyncjob.client.connection import Call
from asyncjob.client.kubernetes.calls import (
    TABLE_CONTENT_TYPE,
    KubernetesCalls,
    ParamPairs,
    jobs_path,
)
from asyncjob.client.options import check_name
from asyncjob.columns import JOB_COLUMNS, PHASE, QUEUE, WORKER
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


async def list_workers(
    api: KubernetesCalls, namespace: str | None, now: datetime
) -> list[WorkerInfo]:
    """Return the live workers by name, each with how many jobs it runs; namespace None: of all.

    The jobs come as a table. The CRD of the minor version before has no column of workers: none of
    them is seen to run a job then.
    """
    running = Counter(await _list_cells(api, namespace, _RUNNING_JOBS, _WORKER_CELL))
    live = await list_live_workers(api, namespace, now)
    counted = (one.model_copy(update={"running": running[one.namespace, one.pod]}) for one in live)
    return sorted(counted, key=lambda worker: (worker.namespace, worker.name))


async def list_live_workers(
    api: KubernetesCalls, namespace: str | None, now: datetime
) -> list[WorkerInfo]:
    """Return the workers that are not silent by the caller's clock."""

    def keep(lease: JsonObject) -> WorkerInfo | None:
        return None if is_lease_expired(lease, now) else worker_of(lease)

    scope = f"/namespaces/{namespace}" if namespace else ""
    path = f"/apis/coordination.k8s.io/v1{scope}/leases"
    return await api.list_all(path, _WORKER_LEASES, keep)


_COLUMN_NAMES: Final = [column.name for column in JOB_COLUMNS]
_PHASE_CELL: Final = _COLUMN_NAMES.index(PHASE) + 1  # the name comes first
_QUEUE_CELL: Final = _COLUMN_NAMES.index(QUEUE) + 1
_WORKER_CELL: Final = _COLUMN_NAMES.index(WORKER) + 1

PhaseCounts = Mapping[tuple[str, str], Mapping[str, int]]
"""Namespace and queue → phase → jobs."""


async def list_queues(
    api: KubernetesCalls, namespace: str | None, now: datetime
) -> list[QueueInfo]:
    """Return all queues by name; namespace None: of all namespaces, one after the other.

    What no AsyncQueue counts is counted here, as a table.
    """
    path = collection_path(namespace, QUEUES)
    known = await api.list_all(path, (), queue_of)
    workers = await list_live_workers(api, namespace, now)
    counts = await _count_jobs(api, namespace, ())
    served = {(worker.namespace, worker.queue) for worker in workers}
    others = ({*counts} | served) - {(queue.namespace, queue.name) for queue in known}
    found = [*known, *(queue_without_object(*one, counts, workers) for one in others)]
    return sorted(found, key=lambda queue: (queue.namespace, queue.name))


async def get_queue(api: KubernetesCalls, namespace: str, name: str, now: datetime) -> QueueInfo:
    """Return one queue; one without an AsyncQueue is open and unlimited."""
    try:
        return queue_of(await api.get(_queue_path(namespace, name)))
    except ObjectNotFoundError:
        workers = await list_live_workers(api, namespace, now)
        counts = await _count_jobs(api, namespace, (("fieldSelector", f"spec.queue={name}"),))
        return queue_without_object(namespace, name, counts, workers)


async def set_paused(
    api: KubernetesCalls, namespace: str, name: str, now: datetime, *, paused: bool
) -> QueueInfo:
    """Pause or resume; only a pause creates the AsyncQueue where there is none."""
    body: dict[str, Json] = {"spec": {"paused": paused}}
    path = _queue_path(namespace, name)
    try:
        return queue_of(await api.merge_patch(path, body))
    except ObjectNotFoundError:
        if not paused:
            return await get_queue(api, namespace, name, now)
    made: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": QUEUE_KIND,
        "metadata": {"name": name, "namespace": namespace},
        **body,
    }
    try:
        return queue_of(await api.send(Call("POST", collection_path(namespace, QUEUES), body=made)))
    except AlreadyExistsError:
        return queue_of(await api.merge_patch(path, body))


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


async def _count_jobs(
    api: KubernetesCalls, namespace: str | None, params: ParamPairs
) -> PhaseCounts:
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    rows = await _list_cells(api, namespace, params, _QUEUE_CELL, _PHASE_CELL)
    for place, queue, phase in rows:
        counts[place, queue][phase] += 1
    return counts


async def _list_cells(
    api: KubernetesCalls, namespace: str | None, params: ParamPairs, *cells: int
) -> list[tuple[str, ...]]:
    """Return of each job its namespace and these cells of its row, without reading the job."""
    # Only the metadata says which of several namespaces a row is of.
    included = "None" if namespace else "Metadata"

    def read(row: JsonObject) -> tuple[str, ...]:
        place = namespace or text(child(child(row, "object"), "metadata"), "namespace")
        found = items(row, "cells")
        return place, *(str(found[cell]) if cell < len(found) else "" for cell in cells)

    return await api.list_all(
        jobs_path(namespace),
        (("includeObject", included), *params),
        read,
        items_key="rows",
        accept=TABLE_CONTENT_TYPE,
    )


def _queue_path(namespace: str, name: str) -> str:
    return queue_path(namespace, check_name(name, errors.QueueNotFoundError))
