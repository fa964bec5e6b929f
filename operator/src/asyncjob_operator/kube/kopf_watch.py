"""kopf as this operator uses it: it watches AsyncQueues and passes each event on.

It signs in with the operator's own identity, survives every outage, and writes nothing.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

import kopf
import structlog
from kopf._cogs.structs.references import Insights

from asyncjob.json_types import JsonObject
from asyncjob.kube import ClusterAccess
from asyncjob.names import GROUP, QUEUES, VERSION
from asyncjob_operator.kube.kopf_session import KopfAuthenticator

IDLE_SECONDS: Final = 1.0
PAGE_SIZE: Final = 4
"""Objects in a page. kopf bounds pages by number alone: so many of the largest are 6 MB of text."""

FIRST_BACKOFFS: Final = (1.0, 1.0, 2.0, 3.0, 5.0, 8.0)
LAST_BACKOFF: Final = 10.0


class EndlessBackoffs:
    """Backoffs that never run out: kopf gives up, and exits, at the end of a finite list."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain(FIRST_BACKOFFS, itertools.repeat(LAST_BACKOFF))


class NoProgressStorage(kopf.ProgressStorage):
    """Keeps nothing: events have no progress."""

    def fetch(self, **_: object) -> None:
        """Return nothing."""

    def store(self, **_: object) -> None:
        """Store nothing."""

    def purge(self, **_: object) -> None:
        """Remove nothing."""

    def touch(self, **_: object) -> None:
        """Touch nothing."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """Return the essence itself, not a deep copy."""
        return essence


class NoDiffBaseStorage(kopf.DiffBaseStorage):
    """Keeps nothing: nobody asks what has changed."""

    def build(self, **_: object) -> kopf.BodyEssence:
        """Return an empty essence, not a deep copy of the object."""
        return kopf.BodyEssence()

    def fetch(self, **_: object) -> None:
        """Return nothing."""

    def store(self, **_: object) -> None:
        """Store nothing."""


def kopf_settings() -> kopf.OperatorSettings:
    """Return settings under which kopf watches, survives outages, and writes nothing."""
    chosen = kopf.OperatorSettings()
    chosen.process.ultimate_exiting_timeout = None
    chosen.posting.enabled = False
    chosen.peering.standalone = True
    chosen.scanning.disabled = True
    chosen.queueing.worker_limit = None
    chosen.queueing.idle_timeout = IDLE_SECONDS
    chosen.watching.chunk_size = PAGE_SIZE
    chosen.networking.error_backoffs = EndlessBackoffs()
    chosen.networking.connect_timeout = 5.0
    chosen.persistence.progress_storage = NoProgressStorage()
    chosen.persistence.diffbase_storage = NoDiffBaseStorage()
    return chosen


log = structlog.get_logger()

QueueEventHandler = Callable[[str | None, JsonObject], None]
"""Takes the type of an event (None: found in a list) and the object."""


_IDENTITY: Final[Any] = "asyncjob-operator"
"""A name for peering, which is off; without one kopf asks for its user's, which a pod may lack."""


async def watch_queues(
    access: ClusterAccess,
    namespaces: Sequence[str],
    on_event: QueueEventHandler,
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
        log.warning("kopf has found no AsyncQueues to watch")
        stop.set()


def registry(
    authenticator: KopfAuthenticator, on_event: QueueEventHandler
) -> kopf.OperatorRegistry:
    """Return the handlers: a way to sign in, and one for events, which returns None."""
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers, id="sign-in")
    async def _login(**_: object) -> kopf.AiohttpSession:
        return await authenticator.new_session()

    @kopf.on.event(GROUP, VERSION, QUEUES, registry=handlers, id="queue")
    async def _queue(event: kopf.RawEvent, **_: object) -> None:
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
