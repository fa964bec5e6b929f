"""A namespace with one of everything that the project leaves in one."""

from typing import Any, Final

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import (
    CRON_JOBS,
    OPERATOR_LEASE,
    POD_UID_ANNOTATION,
    QUEUES,
    WORKER_LEASE_PREFIX,
    collection_path,
)
from support.cluster.api import Client
from support.cluster.identities import Space, Worker
from support.driven.lives import Life
from support.objects.builders import cron_job, queue

LEASES: Final = "apis/coordination.k8s.io/v1"


def inhabit(space: Space, worker: Worker, elected: Client) -> str:
    """Create jobs, queue, cron job and Leases; return the path of the worker's Lease."""
    for phase in (Phase.QUEUED, Phase.RUNNING, Phase.SUCCEEDED):
        life = Life(space.name, f"job-{phase.lower()}", space.admin, worker)
        life.create()
        life.bring(phase)
    space.admin.create(collection_path(space.name, QUEUES), queue("mail", paused=True)).object()
    space.admin.create(collection_path(space.name, CRON_JOBS), cron_job()).object()
    lease = announce(space, worker)
    body = {"metadata": {"name": OPERATOR_LEASE}, "spec": {"holderIdentity": "operator-0"}}
    elected.create(space.path("leases", LEASES), body).object()
    return lease


def announce(space: Space, worker: Worker) -> str:
    """Create the Lease of a worker as it does itself: it is to go with its pod."""
    name = WORKER_LEASE_PREFIX + worker.pod
    pod = {"apiVersion": "v1", "kind": "Pod", "name": worker.pod, "uid": worker.pod_uid}
    body: dict[str, Any] = {
        "metadata": {
            "name": name,
            "annotations": {POD_UID_ANNOTATION: worker.pod_uid},
            "ownerReferences": [pod],
        },
        "spec": {"holderIdentity": f"{worker.pod}/1"},
    }
    path = space.path("leases", LEASES)
    worker.client.create(path, body).object()
    return f"{path}/{name}"
