"""What the operator keeps in sight, by its own loops."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from asyncjob.json_types import JsonObject, child, text
from asyncjob.names import CRON_JOB_LABEL, JOBS, collection_path, cron_job_path, queue_path
from asyncjob_operator.controllers.job_informer import JobWatch
from asyncjob_operator.informers import Informers
from asyncjob_operator.kube import paths
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.preflight import Findings
from asyncjob_operator.queues import Queues
from asyncjob_operator.supervision import TaskSupervisor
from asyncjob_operator.telemetry.loop_health import HealthMonitor, LoopHealth
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.rights.happening import happens
from support.rights.probes.operating import operating, settings_of
from support.rights.probes.probe import Ground, Run
from support.rights.scenes import create_cron_job, create_job, create_queue
from support.rights.seats import Seat
from support.vitals import containment, pulse

CHANGES = 3
"""How often a queue is changed: more than lists alone would show."""


@dataclass
class Loops:
    """Takes what the operator would start, by name."""

    by_name: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)

    def start(self, name: str, run: Callable[[LoopHealth], Awaitable[None]], *_: object) -> None:
        """Keep it."""
        self.by_name[name] = partial(run, pulse(name))

    @property
    def tasks(self) -> TaskSupervisor:
        """Return itself as what the operator expects."""
        return cast("TaskSupervisor", self)


def follows(kind: str) -> Run:
    """Return a probe that has a kind of objects in sight: list, then watch."""

    async def run(seat: Seat, _ground: Ground, _: str) -> None:
        path = {
            "pods": paths.pods_path(seat.namespace),
            "leases": paths.leases_path(seat.namespace),
        }[kind]
        async with operating(seat) as (parts, session):
            loops = Loops()
            following = Informers(session, (seat.namespace,), loops.tasks, containment())
            following.start(parts.job_controller, Findings(), recovery=True)
            watching = loops.by_name[f"watch of {kind} in {seat.namespace}"]
            await happens(lambda: path in session.watched, watching)

    return run


async def follows_queues(seat: Seat, _: Ground, name: str) -> None:
    """Pause and resume a queue until kopf has told of it: the first may come by the list."""
    create_queue(seat, name)
    async with operating(seat) as (parts, session):
        loops, known = Loops(), parts.job_controller.queues
        queues = Queues(
            settings_of(seat),
            session,
            cache=known,
            containment=containment(),
            metrics=OperatorMetrics(),
            health=HealthMonitor(60.0, monotonic),
        )
        queues.start(loops.tasks, lambda: None)
        paused = [False]

        def followed() -> bool:
            if (seat.namespace, name) not in known:
                return False
            if known.view(seat.namespace, name).paused == paused[-1]:
                paused.append(not paused[-1])
                wish = {"spec": {"paused": paused[-1]}}
                seat.admin.merge(queue_path(seat.namespace, name), wish).object()
            return len(paused) > CHANGES

        await happens(followed, *loops.by_name.values())


async def triggers(seat: Seat, _: Ground, name: str) -> None:
    """Have the operator see a schedule, and raise its trigger twice: a list may have the first."""
    create_cron_job(seat, name)
    selector = {"labelSelector": f"{CRON_JOB_LABEL}={name}"}
    async with operating(seat) as (parts, _session):
        loops = Loops()
        parts.cron_jobs.start(loops.tasks, Findings())

        def ran() -> bool:
            if not parts.cron_jobs.controller.names_in(None):
                return False
            runs = seat.admin.get(collection_path(seat.namespace, JOBS), **selector).object()[
                "items"
            ]
            wish = {"spec": {"trigger": len(runs) + 1}}
            seat.admin.merge(cron_job_path(seat.namespace, name), wish).object()
            return len(runs) > 1

        await happens(ran, *loops.by_name.values())


async def sees_new_jobs(seat: Seat, _: Ground, name: str) -> None:
    """Create jobs until the watch tells of one."""
    seen: list[str] = []

    def sink(_kind: str, obj: JsonObject) -> None:
        seen.append(text(child(obj, "metadata"), "name"))

    async def begun(_namespace: str | None) -> str:
        return "0"

    def ready() -> bool:
        create_job(seat, f"{name}-{len(tried)}")
        tried.append(name)
        return any(one.startswith(name) for one in seen)

    tried: list[str] = []
    async with operating(seat) as (_parts, session):
        watch = JobWatch(session, sink, begun, lambda _: None)
        await happens(ready, lambda: watch.run(seat.namespace))
