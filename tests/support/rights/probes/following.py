"""What the operator keeps in sight, by its own loops."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, cast

import kopf

from asyncjob.json_types import JsonObject, child, text
from asyncjob.names import (
    ARRAYS,
    CRON_JOB_LABEL,
    CRON_JOBS,
    GROUP,
    JOBS,
    QUEUES,
    VERSION,
    array_path,
    collection_path,
    cron_job_path,
)
from asyncjob_operator.controllers.job_informer import JobWatch
from asyncjob_operator.informers import Informers
from asyncjob_operator.kopf_collections import queue_collection
from asyncjob_operator.kopf_handlers import PEERING_IDENTITY
from asyncjob_operator.kube import paths
from asyncjob_operator.kube.kopf_session import KopfSession, watch_only
from asyncjob_operator.kube.preflight import Findings
from asyncjob_operator.operator import start_array_loops, start_cron_job_loops
from asyncjob_operator.supervision import TaskSupervisor
from asyncjob_operator.telemetry.loop_health import LoopHealth
from support.parts.vitals import loop_health, quarantine
from support.rights.happening import happens
from support.rights.preparation import create_array, create_cron_job, create_job, create_queue
from support.rights.principals import Principal, WatchCountingSession
from support.rights.probes.operating import operating
from support.rights.probes.probe import ProbeSetup, Run

FAR: Final = 3600.0
"""Seconds to the next comparison: farther than a probe looks."""


@dataclass
class Loops:
    """Takes what the operator would start, by name."""

    by_name: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)

    def start(
        self, name: str, run: Callable[[LoopHealth], Awaitable[None]], *_: object, **__: object
    ) -> None:
        """Keep it."""
        self.by_name[name] = partial(run, loop_health(name))

    @property
    def tasks(self) -> TaskSupervisor:
        """Return itself as what the operator expects."""
        return cast("TaskSupervisor", self)


def follows(kind: str) -> Run:
    """Return a probe that has a kind of objects in sight: list, then watch."""

    async def run(principal: Principal, _ground: ProbeSetup, _: str) -> None:
        path = {"pods": paths.pods_path, "leases": paths.leases_path}[kind](principal.namespace)
        async with operating(principal) as (parts, session):
            loops = Loops()
            following = Informers(
                session,
                (principal.namespace,),
                quarantine(),
                worker_pods=parts.caches.worker_pods,
                worker_registry=parts.caches.worker_registry,
            )
            following.start(loops.tasks, Findings(), recovery=True)
            watching = loops.by_name[f"watch of {kind} in {principal.namespace}"]
            await happens(lambda: path in session.watched, watching)

    return run


def by_kopf(
    principal: Principal,
    session: WatchCountingSession,
    resource: str,
    on_event: Callable[[str | None, Any], None],
) -> Callable[[], Awaitable[None]]:
    """Return a loop in which kopf watches a resource as the operator has it watch."""

    def ignore(_watched: object) -> None: ...

    handlers, http = kopf.OperatorRegistry(), KopfSession(session.access)
    listener = cast("Any", SimpleNamespace(on_watch_progress=ignore, on_relist=ignore))
    http.follow(listener, (resource,), (principal.namespace,))

    @kopf.on.startup(registry=handlers)
    async def _configure(settings: kopf.OperatorSettings, **_: object) -> None:
        watch_only(settings)

    @kopf.on.login(registry=handlers)
    async def _sign_in(**_: object) -> kopf.AiohttpSession:
        return http.sign_in()

    @kopf.on.event(GROUP, VERSION, resource, registry=handlers)
    async def _take(event: kopf.RawEvent, **_: object) -> None:
        on_event(event["type"], event["object"])

    async def run() -> None:
        try:
            await kopf.operator(
                registry=handlers,
                standalone=True,
                namespaces=[principal.namespace],
                identity=PEERING_IDENTITY,
            )
        finally:
            await http.close()

    return run


async def sees_queues(principal: Principal, _: ProbeSetup, name: str) -> None:
    """List queues beside kopf, and create queues until kopf's watch tells of one."""
    seen: list[str] = []
    made: list[str] = []

    def sink(kind: str | None, obj: JsonObject) -> None:
        if kind is not None:
            seen.append(text(child(obj, "metadata"), "name"))

    async with operating(principal) as (parts, session):
        loops = Loops()
        known = parts.caches.queues
        [store] = queue_collection(session, (principal.namespace,), known, quarantine(), FAR).start(
            loops.tasks
        )

        def ready() -> bool:
            create_queue(principal, f"{name}-{len(made)}")
            made.append(name)
            return store.synced.is_set() and any(one.startswith(name) for one in seen)

        await happens(
            ready,
            loops.by_name[f"resync of queues in {principal.namespace}"],
            by_kopf(principal, session, QUEUES, sink),
        )


async def triggers(principal: Principal, _: ProbeSetup, name: str) -> None:
    """Have the operator see a cron job, and raise its trigger twice: kopf may list the first."""
    create_cron_job(principal, name)
    selector = {"labelSelector": f"{CRON_JOB_LABEL}={name}"}
    async with operating(principal) as (parts, session):
        loops = Loops()
        start_cron_job_loops(parts, loops.tasks, Findings())
        seen: list[str | None] = []

        def sink(kind: str | None, obj: JsonObject) -> None:
            seen.append(kind)
            parts.kopf_collections[CRON_JOBS].on_event(kind, obj)

        def ran() -> bool:
            if not parts.cron_job_evaluator.names_in(None):
                return False
            runs = principal.admin.get(
                collection_path(principal.namespace, JOBS), **selector
            ).object()["items"]
            control = {"spec": {"trigger": len(runs) + 1}}
            principal.admin.merge(cron_job_path(principal.namespace, name), control).object()
            return len(runs) > 1 and "MODIFIED" in seen

        await happens(ran, *loops.by_name.values(), by_kopf(principal, session, CRON_JOBS, sink))


async def runs_an_array(principal: Principal, _: ProbeSetup, name: str) -> None:
    """Have the operator see an array, cut it into chunks, and see that the status has changed."""
    await _look_after_array(
        principal, name, lambda status, seen: "open" in status and "MODIFIED" in seen
    )


async def removes_an_array(principal: Principal, _: ProbeSetup, name: str) -> None:
    """Have the operator end an array, and delete it after no time."""
    spec = {"cancel": True, "ttlSecondsAfterFinished": 0}
    await _look_after_array(principal, name, lambda status, _seen: status is None, **spec)


async def _look_after_array(
    principal: Principal, name: str, is_done: Callable[[Any, list[str | None]], bool], **spec: Any
) -> None:
    create_array(principal, name, **spec)
    path = array_path(principal.namespace, name)
    async with operating(principal) as (parts, session):
        loops = Loops()
        start_array_loops(parts, loops.tasks, Findings())
        seen: list[str | None] = []

        def sink(kind: str | None, obj: JsonObject) -> None:
            seen.append(kind)
            parts.kopf_collections[ARRAYS].on_event(kind, obj)

        def done() -> bool:
            labels = {"metadata": {"labels": {"touched": str(len(seen))}}}
            principal.admin.merge(path, labels)
            found = principal.admin.get(path)
            status = found.object()["status"] if found.accepted else None
            return is_done(status, seen)

        await happens(done, *loops.by_name.values(), by_kopf(principal, session, ARRAYS, sink))


async def sees_new_jobs(principal: Principal, _: ProbeSetup, name: str) -> None:
    """Create jobs until the watch tells of one."""
    seen: list[str] = []

    def sink(_kind: str, obj: JsonObject) -> None:
        seen.append(text(child(obj, "metadata"), "name"))

    async def begun(_namespace: str | None) -> str:
        return "0"

    def ready() -> bool:
        create_job(principal, f"{name}-{len(tried)}")
        tried.append(name)
        return any(one.startswith(name) for one in seen)

    tried: list[str] = []
    async with operating(principal) as (_parts, session):
        watch = JobWatch(session, sink, begun, lambda _: None)
        await happens(ready, lambda: watch.run(principal.namespace))
