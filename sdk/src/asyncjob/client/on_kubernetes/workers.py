"""Workers, by the Leases that they announce themselves in."""

from collections import Counter
from datetime import datetime
from typing import Final

from asyncjob.client.on_kubernetes.calls import jobs_path, list_all
from asyncjob.client.steps import Steps
from asyncjob.json_types import JsonObject, child, text
from asyncjob.names import COMPONENT_LABEL, WORKER_COMPONENT
from asyncjob.rest.surroundings import WorkerInfo
from asyncjob.rest.surroundings_reading import is_lease_expired, worker_of

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
