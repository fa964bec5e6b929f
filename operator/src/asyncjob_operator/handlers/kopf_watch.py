"""kopf as this operator uses it: it watches schedules and hands each event on."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import kopf
import structlog
from kopf._cogs.structs.references import Insights

from asyncjob.json_types import JsonObject
from asyncjob.kube import ClusterAccess
from asyncjob.names import CRON_JOBS, GROUP, VERSION
from asyncjob_operator.handlers.kopf_settings import kopf_settings
from asyncjob_operator.handlers.sign_in import KopfAuthenticator

log = structlog.get_logger()

CronJobEventHandler = Callable[[str | None, JsonObject], None]
"""Takes the type of an event (None: found in a list) and the object."""


_IDENTITY: Final[Any] = "asyncjob-operator"
"""A name for peering, which is off; without one kopf asks for its user's, which a pod may lack."""


async def watch_cron_jobs(
    access: ClusterAccess,
    namespaces: Sequence[str],
    on_event: CronJobEventHandler,
    on_started: Callable[[], None],
) -> None:
    """Run kopf until cancelled or broken; it ends no task but those it starts here.

    `on_started` is called once kopf has taken over the process's signals, to take them back.
    """
    sign_in, insights, stop = KopfAuthenticator(access), Insights(), asyncio.Event()
    looking = asyncio.create_task(_stop_if_not_installed(insights, stop))
    try:
        tasks = await kopf.spawn_tasks(
            registry=registry(sign_in, on_event),
            settings=kopf_settings(),
            insights=insights,
            clusterwide=not namespaces,
            namespaces=namespaces,
            identity=_IDENTITY,
            stop_flag=stop,
        )
        on_started()
        await kopf.run_tasks(tasks, ignored=_AllTasks())
    finally:
        looking.cancel()
        await sign_in.close()


async def _stop_if_not_installed(insights: Insights, stop: asyncio.Event) -> None:
    """Kopf looks for the type once; without it, it would wait for ever and see nothing."""
    await insights.ready_resources.wait()
    if not insights.watched_resources:
        log.warning("kopf has found no AsyncCronJobs to watch")
        stop.set()


def registry(
    authenticator: KopfAuthenticator, on_event: CronJobEventHandler
) -> kopf.OperatorRegistry:
    """Return the handlers: a way to sign in, and one for events, which returns None."""
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers, id="sign-in")
    async def _login(**_: object) -> kopf.AiohttpSession:
        return await authenticator.new_session()

    @kopf.on.event(GROUP, VERSION, CRON_JOBS, registry=handlers, id="schedule")
    async def _schedule(event: kopf.RawEvent, **_: object) -> None:
        on_event(event["type"], cast("JsonObject", event["object"]))

    return handlers


class _AllTasks(Sequence[asyncio.Task[object]]):
    """All tasks there are, as far as kopf is concerned."""

    def __contains__(self, task: object) -> bool:
        return True

    def __len__(self) -> int:
        return 0

    def __getitem__(self, index: object) -> asyncio.Task[object]:  # type: ignore[override]
        raise IndexError
