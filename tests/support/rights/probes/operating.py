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
    array_path,
    job_path,
    queue_path,
)
from asyncjob.rules.managed_fields import MANAGED_FIELDS_POLICY, managed_fields_manifests
from asyncjob.rules.policy import ADMISSION_API_VERSION
from asyncjob_operator.components import Components
from asyncjob_operator.controllers.job_informer import load_jobs
from asyncjob_operator.controllers.preconditions import CacheUpdates, PreconditionChecker
from asyncjob_operator.core.decision import PodGone, Precondition, WorkerReplaced
from asyncjob_operator.core.events import namespace_event
from asyncjob_operator.core.options import RetentionOptions
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.leader_election import AlwaysLeader, LeaderElector
from asyncjob_operator.kube.paths import leases_path
from asyncjob_operator.kube.preflight import find_missing_policies, preflight
from asyncjob_operator.kube.version_times import VersionTimes
from asyncjob_operator.loops import run_retention, run_stale_worker_collection
from asyncjob_operator.settings import Settings
from asyncjob_operator.telemetry.loop_health import LoopHealth
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.cluster.versions import MUTATING_POLICIES, needs
from support.parts.vitals import loop_health
from support.rights.happening import happens
from support.rights.preparation import create_array, create_job, create_queue, phase, read_job
from support.rights.principals import Principal, WatchCountingSession
from support.rights.probes.probe import ProbeSetup

ELECTIONS = "elections"
MUTATIONS = f"/apis/{ADMISSION_API_VERSION}/mutatingadmissionpolicybindings"
SOON = 0.05
DRAIN_SECONDS = 1.0


def settings_of(principal: Principal) -> Settings:
    """Return the settings of an operator for the principal's namespace alone."""
    keep_nothing = RetentionOptions(max_age=0, min_age=0, max_finished=0)
    return Settings(
        namespaces=(principal.namespace,),
        identity=principal.account,
        worker_timeout=SOON,
        retention_options=keep_nothing,
    )


@asynccontextmanager
async def operating(principal: Principal) -> AsyncIterator[tuple[Components, WatchCountingSession]]:
    """Put an operator's parts together; they know only what they are shown."""
    settings = settings_of(principal)
    async with await principal.session() as session:
        parts = Components(settings, session, AlwaysLeader(), VersionTimes(), OperatorMetrics())
        try:
            yield parts, session
        finally:
            for dispatch in (
                parts.job_reconcilers,
                parts.admission_reconcilers,
                parts.cron_job_reconcilers,
                parts.array_reconcilers,
            ):
                await dispatch.drain(DRAIN_SECONDS)


def going(run: Callable[[LoopHealth], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """Return a loop whose health nobody checks."""
    return partial(run, loop_health())


async def cancels(principal: Principal, _: ProbeSetup, name: str) -> None:
    made = create_job(principal, name, cancel=True)
    async with operating(principal) as (parts, _session):
        parts.job_evaluator.on_update(made, just_changed=True)
        await happens(
            lambda: phase(principal, name) == "Cancelled", going(parts.job_reconcilers.run)
        )


async def lists_jobs(principal: Principal, _: ProbeSetup, name: str) -> None:
    create_job(principal, name)
    async with operating(principal) as (parts, session):
        assert (
            await load_jobs(session, principal.namespace, parts.job_evaluator, lambda: None)
        ).count > 0


async def reruns(principal: Principal, setup: ProbeSetup, name: str) -> None:
    await cancels(principal, setup, name)
    requested = principal.admin.merge(
        job_path(principal.namespace, name), {"spec": {"rerun": 1}}
    ).object()
    async with operating(principal) as (parts, _session):
        parts.job_evaluator.on_update(requested, just_changed=True)
        await happens(
            lambda: read_job(principal, rerun_name(name, 1)), going(parts.job_reconcilers.run)
        )


async def cascades(principal: Principal, _: ProbeSetup, name: str) -> None:
    parent = create_job(principal, name, cancel=True, cancelCascade=True)
    label = {PARENT_LABEL: parent["metadata"]["uid"]}
    child = create_job(principal, f"{name}-child", label)
    async with operating(principal) as (parts, _session):
        for one in (parent, child):
            parts.job_evaluator.on_update(one, just_changed=True)

        def cancelled() -> Any:
            return read_job(principal, f"{name}-child")["spec"].get("cancel")

        await happens(cancelled, going(parts.job_reconcilers.run))


async def cancels_an_array(principal: Principal, _: ProbeSetup, name: str) -> None:
    parent = create_job(principal, name, cancel=True, cancelCascade=True)
    array = create_array(principal, name, {PARENT_LABEL: parent["metadata"]["uid"]})
    path = array_path(principal.namespace, name)
    async with operating(principal) as (parts, _session):
        parts.job_evaluator.on_update(parent, just_changed=True)
        parts.array_evaluator.on_update(array)

        def cancelled() -> Any:
            return principal.admin.get(path).object()["spec"].get("cancel")

        await happens(cancelled, going(parts.array_reconcilers.run))


async def removes(principal: Principal, setup: ProbeSetup, name: str) -> None:
    await cancels(principal, setup, name)
    async with operating(principal) as (parts, _session):
        parts.job_evaluator.on_update(read_job(principal, name), just_changed=True)
        sweeping = partial(run_retention, parts.retention, AlwaysLeader(), SOON, loop_health())
        await happens(lambda: not read_job(principal, name), sweeping)


async def admits(principal: Principal, _: ProbeSetup, name: str) -> None:
    """Show the operator a queue that somebody else has changed since."""
    queue = create_queue(principal, name, maxConcurrency=1)
    changed = {"metadata": {"labels": {"touched": "true"}}}
    principal.admin.merge(queue_path(principal.namespace, name), changed).object()
    job = create_job(principal, name, queue=name)
    async with operating(principal) as (parts, _session):
        parts.caches.queues.on_update(queue)
        parts.job_evaluator.on_update(job, just_changed=True)

        def admitted() -> Any:
            return read_job(principal, name)["status"].get("admitted")

        await happens(
            admitted, going(parts.job_reconcilers.run), going(parts.admission_reconcilers.run)
        )


async def confirms_pod(principal: Principal, _: ProbeSetup, name: str) -> None:
    await _confirms(principal, PodGone(principal.namespace, name, "no-uid"), there=True)


async def confirms_worker(principal: Principal, _: ProbeSetup, name: str) -> None:
    await _confirms(principal, WorkerReplaced(principal.namespace, name, f"{name}/1"), there=False)


async def _confirms(principal: Principal, proof: Precondition, *, there: bool) -> None:
    def ignore(*_: object) -> None: ...

    correction = CacheUpdates(
        on_pod=ignore,
        on_pod_deleted=ignore,
        on_lease=ignore,
        on_lease_deleted=ignore,
        on_job=ignore,
        on_job_deleted=ignore,
        on_array=ignore,
        on_array_deleted=ignore,
        is_current=lambda _uid: False,
    )
    async with operating(principal) as (_parts, session):
        assert await PreconditionChecker(session, correction, monotonic).verify(proof) is there


async def removes_a_silent_workers_lease(principal: Principal, _: ProbeSetup, name: str) -> None:
    labels = {COMPONENT_LABEL: WORKER_COMPONENT}
    lease = f"{leases_path(principal.namespace)}/{WORKER_LEASE_PREFIX}{name}"
    body = {"metadata": {"name": lease.rpartition("/")[2], "labels": labels}}
    principal.admin.create(leases_path(principal.namespace), body).object()
    async with operating(principal) as (parts, _session):
        looking = partial(
            run_stale_worker_collection, parts.stale_workers, AlwaysLeader(), SOON, loop_health()
        )
        try:
            await happens(lambda: not principal.admin.get(lease).accepted, looking)
        finally:
            principal.admin.delete(lease)


async def tells(principal: Principal, _: ProbeSetup, name: str) -> None:
    async with operating(principal) as (parts, _session):
        parts.events.record(namespace_event(principal.namespace, "WriteRefused", name))

        def told() -> bool:
            events: JsonObject = principal.admin.get(
                f"/api/v1/namespaces/{principal.namespace}/events"
            ).body
            return name in str(events)

        await happens(told, going(parts.events.run))


async def sees_policies(principal: Principal, _ground: ProbeSetup, _: str) -> None:
    async with operating(principal) as (_parts, session):
        found = await find_missing_policies(session)
    assert found == [], found


async def sees_managed_fields(principal: Principal, _ground: ProbeSetup, _: str) -> None:
    """See a binding of the policy, which alone changes nothing."""
    needs(principal.admin, MUTATING_POLICIES)
    _policy, binding = managed_fields_manifests()
    principal.admin.create(MUTATIONS, binding)
    async with operating(principal) as (_parts, session):
        found = await preflight(session, ())
    principal.admin.delete(f"{MUTATIONS}/{MANAGED_FIELDS_POLICY}")
    assert found.drops_managed_fields


async def is_elected(principal: Principal, _ground: ProbeSetup, _: str) -> None:
    """Create the Lease, and renew it."""
    principal.admin.delete(f"{leases_path(ELECTIONS)}/{OPERATOR_LEASE}")
    async with await principal.session() as session:
        elector = LeaderElector(
            session,
            ELECTIONS,
            OPERATOR_LEASE,
            principal.account,
            clock=monotonic,
        )
        for _turn in range(2):
            await elector.try_acquire_or_renew()
        assert elector.leads()
