"""kopf as this operator uses it: a watch, and nothing that would write onto an object."""

import asyncio
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast

import aiohttp
import kopf

from asyncjob.errors import AsyncJobError
from asyncjob.json_types import JsonObject
from asyncjob.kube import ClusterAccess
from asyncjob.names import GROUP, JOBS, VERSION

IDLE_SECONDS: Final = 1.0
PAGE: Final = 500
FIRST_BACKOFFS: Final = (1.0, 1.0, 2.0, 3.0, 5.0, 8.0)
LAST_BACKOFF: Final = 10.0
SIGN_IN_PAUSE: Final = 1.0

Sink = Callable[[str | None, JsonObject], None]
"""Takes the type of an event (None: found in a list) and the object."""


class Endless:
    """Backoffs that never run out: kopf gives up, and exits, at the end of a finite list."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain(FIRST_BACKOFFS, itertools.repeat(LAST_BACKOFF))


class NoProgress(kopf.ProgressStorage):
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


class NoDiffBase(kopf.DiffBaseStorage):
    """Keeps nothing: nobody asks what has changed."""

    def build(self, **_: object) -> kopf.BodyEssence:
        """Return an empty essence, not a deep copy of the object."""
        return kopf.BodyEssence()

    def fetch(self, **_: object) -> None:
        """Return nothing."""

    def store(self, **_: object) -> None:
        """Store nothing."""


def settings() -> kopf.OperatorSettings:
    """Return settings under which kopf watches, survives outages, and writes nothing."""
    chosen = kopf.OperatorSettings()
    chosen.process.ultimate_exiting_timeout = None
    chosen.posting.enabled = False
    chosen.peering.standalone = True
    chosen.scanning.disabled = True
    chosen.queueing.worker_limit = None
    chosen.queueing.idle_timeout = IDLE_SECONDS
    chosen.watching.chunk_size = PAGE
    chosen.networking.error_backoffs = Endless()
    chosen.networking.connect_timeout = 5.0
    chosen.persistence.progress_storage = NoProgress()
    chosen.persistence.diffbase_storage = NoDiffBase()
    return chosen


def registry(access: ClusterAccess, sink: Sink) -> kopf.OperatorRegistry:
    """Return the handlers: a way to sign in, and one for events about jobs that returns None."""
    handlers = kopf.OperatorRegistry()
    sign_in = SignIn(access)

    @kopf.on.login(registry=handlers, id="sign-in")
    async def _login(**_: object) -> kopf.AiohttpSession:
        return await sign_in.session()

    @kopf.on.event(GROUP, VERSION, JOBS, registry=handlers, id="job")
    async def _job(event: kopf.RawEvent, **_: object) -> None:
        sink(event["type"], cast("JsonObject", event["object"]))

    return handlers


class SignIn:
    """HTTP sessions for kopf that sign each request anew, so that no token in them grows old."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        self._signed_in = 0

    async def session(self) -> kopf.AiohttpSession:
        """Return a new session; from the second on kopf was refused, so the token is read anew."""
        self._signed_in += 1
        if self._signed_in > 1:
            await asyncio.sleep(SIGN_IN_PAUSE)
            await self._reload()
        http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._access.ssl_context),
            middlewares=[self._sign],
            proxy=self._access.proxy,
        )
        return kopf.AiohttpSession(
            server=self._access.host,
            aiohttp_session=http,
            default_namespace=self._access.namespace,
        )

    async def _sign(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        request.headers.update(await self._access.headers())
        if self._access.server_hostname:
            request.server_hostname = self._access.server_hostname
        return await handler(request)

    async def _reload(self) -> None:
        try:
            await self._access.reload()
        except AsyncJobError:
            return  # the old token is as good as none: the next refusal comes back here


class _Everyone(Sequence[asyncio.Task[object]]):
    """All tasks there are, as far as kopf is concerned."""

    def __contains__(self, task: object) -> bool:
        return True

    def __len__(self) -> int:
        return 0

    def __getitem__(self, index: object) -> asyncio.Task[object]:  # type: ignore[override]
        raise IndexError


async def watch_jobs(
    handlers: kopf.OperatorRegistry, namespaces: Sequence[str], started: Callable[[], None]
) -> None:
    """Run kopf until cancelled or broken; it ends no task but those it starts here.

    `started` is called once kopf has taken over the process's signals, to take them back.
    """
    tasks = await kopf.spawn_tasks(
        registry=handlers,
        settings=settings(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
    )
    started()
    await kopf.run_tasks(tasks, ignored=_Everyone())
