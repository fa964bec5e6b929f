"""Workers, by the Leases that they announce themselves in."""

from collections import Counter
from datetime import datetime
from typing import Final

from asyncjob.client.on_kubernetes.calls import jobs, read_all
from asyncjob.client.steps import Steps
from asyncjob.json_types import JsonObject, child, text
from asyncjob.names import COMPONENT_LABEL, WORKER_COMPONENT
from asyncjob.rest.surroundings import WorkerInfo
from asyncjob.rest.surroundings_reading import is_silent, worker_of

_WORKERS: Final = (("labelSelector", f"{COMPONENT_LABEL}={WORKER_COMPONENT}"),)
_RUNNING: Final = (("fieldSelector", "status.phase=Running"),)


def workers(namespace: str | None, now: datetime, patience: float) -> Steps[list[WorkerInfo]]:
    """Return the live workers by name, each with how many jobs it runs; namespace None: of all."""
    holders = yield from read_all(jobs(namespace), _RUNNING, patience, _holder)
    running = Counter(holders)
    live = yield from live_workers(namespace, now, patience)
    counted = (one.model_copy(update={"running": running[one.namespace, one.pod]}) for one in live)
    return sorted(counted, key=lambda worker: (worker.namespace, worker.name))


def live_workers(namespace: str | None, now: datetime, patience: float) -> Steps[list[WorkerInfo]]:
    """Return the workers that are not silent by the caller's clock."""

    def keep(lease: JsonObject) -> WorkerInfo | None:
        return None if is_silent(lease, now) else worker_of(lease)

    scope = f"/namespaces/{namespace}" if namespace else ""
    path = f"/apis/coordination.k8s.io/v1{scope}/leases"
    return (yield from read_all(path, _WORKERS, patience, keep))


def _holder(job: JsonObject) -> tuple[str, str]:
    holder = text(child(child(job, "status"), "lease"), "holder")
    return text(child(job, "metadata"), "namespace"), holder
