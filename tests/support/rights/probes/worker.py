"""A worker's rights, by a worker inside this process that runs one job to its end."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from asyncjob.names import (
    CAPABILITIES_ANNOTATION,
    OPERATOR_LEASE,
    announce_capabilities,
    collection_path,
)
from asyncjob.names import JOBS as JOB_KIND
from asyncjob.names import QUEUES as QUEUE_KIND
from asyncjob_worker.leases.registration import leases_path
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.settings import Settings
from asyncjob_worker.tracing import NO_TRACING
from asyncjob_worker.worker import Worker
from support.rights.happening import happens
from support.rights.model import Right
from support.rights.preparation import create_job, has_succeeded, phase
from support.rights.principals import Principal
from support.rights.probes.operating import ELECTIONS
from support.rights.probes.probe import (
    ARRAYS,
    JOBS,
    QUEUES,
    Probe,
    ProbeSetup,
    Run,
    on_leases,
    ours,
)
from support.rights.worker_app import app

SOURCE: Final = "orders"
"""Name of the Secret and of the ConfigMap that payloads come from; each has a key `payload`."""


def runs(kind: str = "echo", **spec: Any) -> Run:
    """Return a probe: a worker sees a job, and everything else it has to see, and runs it."""

    async def run(principal: Principal, _: ProbeSetup, name: str) -> None:
        where = principal.namespace
        create_job(principal, name, queue=name, type=kind, retryPolicy={"maxRetries": 0}, **spec)
        backlog_and_cancels = 2
        sights = Counter({collection_path(where, JOB_KIND): backlog_and_cancels})
        sights.update([collection_path(where, QUEUE_KIND), leases_path(where)])
        settings = Settings(queue=name, concurrency=2, grace=0.0, stop_grace_seconds=0.1)
        async with await principal.session() as session:
            worker = Worker(
                app,
                settings,
                session,
                principal.holder,
                metrics=Metrics(),
                tracing=NO_TRACING,
            )

            def done() -> bool:
                return has_succeeded(principal, name) and sights <= session.watched

            await happens(done, worker.run)

    return run


def source(field: str) -> dict[str, Any]:
    """Return the payload's source."""
    return {"payloadFrom": {field: {"name": SOURCE, "key": "payload"}}}


async def park(principal: Principal, _: ProbeSetup, name: str) -> None:
    """Have a worker park a job, as the leader whose Lease lies in another namespace allows."""
    leases, leader = leases_path(ELECTIONS), "leader"
    lease = {
        "metadata": {
            "name": OPERATOR_LEASE,
            "annotations": {CAPABILITIES_ANNOTATION: announce_capabilities(leader)},
        },
        "spec": {"holderIdentity": leader},
    }
    principal.admin.delete(f"{leases}/{OPERATOR_LEASE}")
    principal.admin.create(leases, lease).object()
    create_job(principal, name, queue=name, type="sleeper")
    settings = Settings(queue=name, operator_namespace=ELECTIONS, stop_grace_seconds=0.1)
    try:
        async with await principal.session() as session:
            worker = Worker(
                app, settings, session, principal.holder, metrics=Metrics(), tracing=NO_TRACING
            )
            await happens(lambda: phase(principal, name) == "Scheduled", worker.run)
    finally:
        principal.admin.delete(f"{leases}/{OPERATOR_LEASE}")


_RUNS: Final = Probe("announce itself, see the queue and its workers, and run a job", runs())
_PARENT: Final = Probe("submit a child and wait for it", runs("parent"))
_MAPPER: Final = Probe("submit an array and wait for it", runs("mapper"))
_SECRET: Final = Probe("read a payload from a Secret", runs(**source("secretKeyRef")))
_CONFIG_MAP: Final = Probe("read a payload from a ConfigMap", runs(**source("configMapKeyRef")))

RIGHTS: Final[Mapping[Right, Probe]] = {
    **ours(JOBS, "list watch", _RUNS),
    **ours(f"{JOBS}/status", "patch", _RUNS),
    **ours(QUEUES, "list watch", _RUNS),
    **on_leases("list watch create patch", _RUNS),
    **ours(JOBS, "get create", _PARENT),
    **ours(ARRAYS, "get create", _MAPPER),
    Right("", "secrets", "get", SOURCE): _SECRET,
    Right("", "configmaps", "get"): _CONFIG_MAP,
}

_PARK: Final = Probe("park a job that sleeps", park)

PROBES: Final = {
    ("asyncjob-worker-rich", "asyncjob-worker-rich"): RIGHTS,
    ("asyncjob-worker-rich", "asyncjob-worker-rich-leader"): on_leases(
        "list", _PARK, OPERATOR_LEASE
    ),
}
