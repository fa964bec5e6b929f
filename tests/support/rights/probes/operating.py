"""What the operator does to jobs, queues and Leases, by its own parts, one at a time."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.derived_jobs import rerun_name
from asyncjob.names import (
    COMPONENT_LABEL,
    OPERATOR_LEASE,
    PARENT_LABEL,
    WORKER_COMPONENT,
    WORKER_LEASE_PREFIX,
    job_path,
    queue_path,
)
from asyncjob_operator.components import Components
from asyncjob_operator.controllers.job_informer import load_jobs
from asyncjob_operator.controllers.preconditions import CacheUpdates, PreconditionChecker
from asyncjob_operator.core.decision import PodGone, Precondition, WorkerReplaced
from asyncjob_operator.core.events import namespace_event
from asyncjob_operator.core.options import RetentionOptions
from asyncjob_operator.kube.leader_election import AlwaysLeader, LeaderElector
from asyncjob_operator.kube.paths import leases_path
from asyncjob_operator.kube.preflight import find_missing_policies
from asyncjob_operator.loops import run_retention, run_stale_worker_collection
from asyncjob_operator.settings import Settings
from asyncjob_operator.telemetry.loop_health import LoopHealth
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.rights.happening import happens
from support.rights.probes.probe import Ground
from support.rights.scenes import create_job, create_queue, phase, read_job
from support.rights.seats import Seat, SeatSession
from support.vitals import loop_health

ELECTIONS = "elections"
SOON = 0.05
DRAIN_SECONDS = 1.0


def settings_of(seat: Seat) -> Settings:
    """Return the settings of an operator for the seat's namespace alone."""
    keep_nothing = RetentionOptions(max_age=0, min_age=0, max_finished=0)
    return Settings(
        namespaces=(seat.namespace,),
        identity=seat.account,
        worker_timeout=SOON,
        retention_options=keep_nothing,
    )


@asynccontextmanager
async def operating(seat: Seat) -> AsyncIterator[tuple[Components, SeatSession]]:
    """Put an operator's parts together; they know only what they are shown."""
    settings = settings_of(seat)
    async with await seat.session() as session:
        parts = Components(settings, session, AlwaysLeader(), OperatorMetrics())
        try:
            yield parts, session
        finally:
            for dispatch in (
                parts.job_reconcilers,
                parts.admission_reconcilers,
                parts.cron_jobs.reconcilers,
            ):
                await dispatch.drain(DRAIN_SECONDS)


def going(run: Callable[[LoopHealth], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """Return a loop whose health nobody checks."""
    return partial(run, loop_health())


async def cancels(seat: Seat, _: Ground, name: str) -> None:
    made = create_job(seat, name, cancel=True)
    async with operating(seat) as (parts, _session):
        parts.job_evaluator.on_update(made, just_changed=True)
        await happens(lambda: phase(seat, name) == "Cancelled", going(parts.job_reconcilers.run))


async def lists_jobs(seat: Seat, _: Ground, name: str) -> None:
    create_job(seat, name)
    async with operating(seat) as (parts, session):
        assert (
            await load_jobs(session, seat.namespace, parts.job_evaluator, lambda: None)
        ).count > 0


async def reruns(seat: Seat, ground: Ground, name: str) -> None:
    await cancels(seat, ground, name)
    requested = seat.admin.merge(job_path(seat.namespace, name), {"spec": {"rerun": 1}}).object()
    async with operating(seat) as (parts, _session):
        parts.job_evaluator.on_update(requested, just_changed=True)
        await happens(lambda: read_job(seat, rerun_name(name, 1)), going(parts.job_reconcilers.run))


async def cascades(seat: Seat, _: Ground, name: str) -> None:
    parent = create_job(seat, name, cancel=True, cancelCascade=True)
    label = {PARENT_LABEL: parent["metadata"]["uid"]}
    child = create_job(seat, f"{name}-child", label)
    async with operating(seat) as (parts, _session):
        for one in (parent, child):
            parts.job_evaluator.on_update(one, just_changed=True)

        def cancelled() -> Any:
            return read_job(seat, f"{name}-child")["spec"].get("cancel")

        await happens(cancelled, going(parts.job_reconcilers.run))


async def removes(seat: Seat, ground: Ground, name: str) -> None:
    await cancels(seat, ground, name)
    async with operating(seat) as (parts, _session):
        parts.job_evaluator.on_update(read_job(seat, name), just_changed=True)
        sweeping = partial(run_retention, parts.retention, AlwaysLeader(), SOON, loop_health())
        await happens(lambda: not read_job(seat, name), sweeping)


async def admits(seat: Seat, _: Ground, name: str) -> None:
    """Show the operator a queue that somebody else has changed since."""
    queue = create_queue(seat, name, maxConcurrency=1)
    changed = {"metadata": {"labels": {"touched": "true"}}}
    seat.admin.merge(queue_path(seat.namespace, name), changed).object()
    job = create_job(seat, name, queue=name)
    async with operating(seat) as (parts, _session):
        parts.job_evaluator.queues.on_update(queue)
        parts.job_evaluator.on_update(job, just_changed=True)

        def admitted() -> Any:
            return read_job(seat, name)["status"].get("admitted")

        await happens(
            admitted, going(parts.job_reconcilers.run), going(parts.admission_reconcilers.run)
        )


async def confirms_pod(seat: Seat, _: Ground, name: str) -> None:
    await _confirms(seat, PodGone(seat.namespace, name, "no-uid"), there=True)


async def confirms_worker(seat: Seat, _: Ground, name: str) -> None:
    await _confirms(seat, WorkerReplaced(seat.namespace, name, f"{name}/1"), there=False)


async def _confirms(seat: Seat, proof: Precondition, *, there: bool) -> None:
    def ignore(*_: object) -> None: ...

    correction = CacheUpdates(
        on_pod=ignore,
        on_pod_deleted=ignore,
        on_lease=ignore,
        on_lease_deleted=ignore,
        on_job=ignore,
        on_job_deleted=ignore,
        is_current=lambda _uid: False,
    )
    async with operating(seat) as (_parts, session):
        assert await PreconditionChecker(session, correction).verify(proof) is there


async def says_farewell(seat: Seat, _: Ground, name: str) -> None:
    labels = {COMPONENT_LABEL: WORKER_COMPONENT}
    lease = f"{leases_path(seat.namespace)}/{WORKER_LEASE_PREFIX}{name}"
    body = {"metadata": {"name": lease.rpartition("/")[2], "labels": labels}}
    seat.admin.create(leases_path(seat.namespace), body).object()
    async with operating(seat) as (parts, _session):
        looking = partial(
            run_stale_worker_collection, parts.stale_workers, AlwaysLeader(), SOON, loop_health()
        )
        try:
            await happens(lambda: not seat.admin.get(lease).accepted, looking)
        finally:
            seat.admin.delete(lease)


async def tells(seat: Seat, _: Ground, name: str) -> None:
    async with operating(seat) as (parts, _session):
        parts.events.record(namespace_event(seat.namespace, "Probe", name))

        def told() -> bool:
            events: JsonObject = seat.admin.get(f"/api/v1/namespaces/{seat.namespace}/events").body
            return name in str(events)

        await happens(told, going(parts.events.run))


async def sees_policies(seat: Seat, _ground: Ground, _: str) -> None:
    async with operating(seat) as (_parts, session):
        found = await find_missing_policies(session)
    assert found == [], found


async def is_elected(seat: Seat, _ground: Ground, _: str) -> None:
    """Create the Lease, and renew it."""
    seat.admin.delete(f"{leases_path(ELECTIONS)}/{OPERATOR_LEASE}")
    async with await seat.session() as session:
        elector = LeaderElector(session, ELECTIONS, OPERATOR_LEASE, seat.account)
        for _turn in range(2):
            await elector.try_acquire_or_renew()
        assert elector.leads()
