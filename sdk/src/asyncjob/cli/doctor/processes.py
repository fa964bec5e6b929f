"""Checks that an operator leads, by its Lease, and that each queue has live workers.

For each type of jobs there has to be one that knows it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob import __version__
from asyncjob.cli.doctor.findings import DoctorCode, Finding, join_some, ok, problem, warning
from asyncjob.cli.durations import human_duration, parse_time
from asyncjob.errors import ForbiddenError
from asyncjob.json_types import JsonObject, as_object, child, integer, items, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import OPERATOR_LEASE
from asyncjob.rest.jobs import JobSummary
from asyncjob.rest.resources import QueueInfo, WorkerInfo

OPERATOR_CHECK: Final = "Operator"
START_OPERATOR: Final = "start it; asyncjob-operator check shows what prevents it"
MAX_MISSED_LEASES: Final = 3
"""A leader renews several times within its Lease; one that is this many Leases late is gone."""


@dataclass(frozen=True, slots=True)
class OperatorLease:
    """A Lease by which operators elect their leader."""

    namespace: str
    holder: str
    renew_time: str
    lease_duration_seconds: int


async def fetch_operator_leases(session: KubeSession) -> list[OperatorLease] | None:
    """Return the Leases of operators in all namespaces, or in ours; None if we may see neither."""
    ours = f"/apis/coordination.k8s.io/v1/namespaces/{session.access.namespace}/leases"
    for path in ("/apis/coordination.k8s.io/v1/leases", ours):
        try:
            found = await session.get(path, {"fieldSelector": f"metadata.name={OPERATOR_LEASE}"})
        except ForbiddenError:
            continue
        return [_read_lease(as_object(one)) for one in items(found, "items")]
    return None


def _read_lease(lease: JsonObject) -> OperatorLease:
    spec = child(lease, "spec")
    return OperatorLease(
        text(child(lease, "metadata"), "namespace"),
        text(spec, "holderIdentity"),
        text(spec, "renewTime"),
        integer(spec, "leaseDurationSeconds", 15),
    )


def check_operator(leases: Sequence[OperatorLease] | None, now: datetime) -> list[Finding]:
    """Return whether one leads; `now` by the API server's clock."""
    if leases is None:
        message = "no permission to see its Lease"
        return [warning(OPERATOR_CHECK, DoctorCode.NOT_READABLE, message, "needs list on leases")]
    if not leases:
        return [_no_operator(f"no Lease {OPERATOR_LEASE}: no operator has run here yet")]
    return [_check_leader(one, now) for one in leases]


def _no_operator(message: str) -> Finding:
    return problem(OPERATOR_CHECK, DoctorCode.NO_OPERATOR, message, START_OPERATOR)


def _check_leader(lease: OperatorLease, now: datetime) -> Finding:
    renewed, where = parse_time(lease.renew_time), f"namespace {lease.namespace}"
    if not lease.holder or renewed is None:
        return _no_operator(f"none leads in {where}")
    silent = (now - renewed).total_seconds()
    message = f"{lease.holder} leads, in {where}"
    if silent > MAX_MISSED_LEASES * lease.lease_duration_seconds:
        return _no_operator(f"{message}, but has been silent for {human_duration(silent)}")
    return ok(OPERATOR_CHECK, f"{message}, seen {human_duration(silent)} ago")


WORKERS_CHECK: Final = "Workers"
JOB_TYPES_CHECK: Final = "Job types"


def check_workers(
    workers: Sequence[WorkerInfo], queues: Sequence[QueueInfo], waiting: Sequence[JobSummary]
) -> list[Finding]:
    """Return which queues have jobs and no workers, and which types nobody knows."""
    found = [*_unserved_queues(workers, queues), *_paused_queues(queues), *_other_versions(workers)]
    types = list(_unserved_types(workers, waiting))
    return [*_live_workers(workers), *found, *(types or _all_types_served(waiting))]


def _live_workers(workers: Sequence[WorkerInfo]) -> list[Finding]:
    if not workers:
        way = "start some: asyncjob-worker run module:app --queue QUEUE"
        message = "none is live: no job will start"
        return [warning(WORKERS_CHECK, DoctorCode.NO_WORKER, message, way)]
    by_queue = Counter(one.queue for one in workers)
    slots: Counter[str] = Counter()
    for one in workers:
        slots[one.queue] += one.slots
    queues = [f"{queue}: {n} with {slots[queue]} slots" for queue, n in sorted(by_queue.items())]
    return [ok(WORKERS_CHECK, "; ".join(queues))]


def _unserved_queues(
    workers: Sequence[WorkerInfo], queues: Sequence[QueueInfo]
) -> Iterator[Finding]:
    served = {one.queue for one in workers}
    for queue in queues:
        queued = queue.counts.get(Phase.QUEUED, 0)
        if queued and queue.name not in served:
            message = f"queue {queue.name} has {queued} queued jobs and no worker"
            way = f"start one: asyncjob-worker run … --queue {queue.name}"
            yield problem(WORKERS_CHECK, DoctorCode.NO_WORKER, message, way)


def _paused_queues(queues: Sequence[QueueInfo]) -> Iterator[Finding]:
    for queue in queues:
        if queue.paused:
            message = f"queue {queue.name} is paused"
            way = f"asyncjob queue resume {queue.name}"
            yield warning(WORKERS_CHECK, DoctorCode.QUEUE_PAUSED, message, way)


def _other_versions(workers: Sequence[WorkerInfo]) -> Iterator[Finding]:
    others = sorted({one.version for one in workers if one.version} - {__version__})
    if others:
        message = f"some run asyncjob {join_some(others)}, this is {__version__}"
        yield warning(
            WORKERS_CHECK,
            DoctorCode.WORKER_RELEASE,
            message,
            "roll out the workers with this release, or use the command line of theirs",
        )


def _unserved_types(
    workers: Sequence[WorkerInfo], waiting: Sequence[JobSummary]
) -> Iterator[Finding]:
    known = types_by_queue(workers)
    lost: dict[tuple[str, str], list[str]] = defaultdict(list)
    for job in waiting:
        if job.queue in known and job.type not in known[job.queue]:
            lost[job.queue, job.type].append(job.id)
    for (queue, kind), names in sorted(lost.items()):
        message = f"no live worker of queue {queue} has a handler for {kind}: {join_some(names, 3)}"
        elsewhere = sorted(other for other, types in known.items() if kind in types)
        way = f"queue {join_some(elsewhere)} has: submit them there" if elsewhere else ""
        way = way or "deploy the handler, or cancel the jobs"
        yield problem(JOB_TYPES_CHECK, DoctorCode.NO_HANDLER, message, way)


def types_by_queue(workers: Sequence[WorkerInfo]) -> Mapping[str, set[str]]:
    """Return which types the live workers of each queue take; no key for a queue without any."""
    known: dict[str, set[str]] = defaultdict(set)
    for one in workers:
        known[one.queue].update(one.types)
    return known


def _all_types_served(waiting: Sequence[JobSummary]) -> list[Finding]:
    return (
        [ok(JOB_TYPES_CHECK, f"all {len(waiting)} waiting jobs have a handler")] if waiting else []
    )
