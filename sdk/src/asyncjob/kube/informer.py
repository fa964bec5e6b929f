"""Keeps a handler informed of a collection: a list, then a watch, repeated until cancelled."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from asyncjob.errors import ApiError, ExpiredError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube.pacing import TimeSlice, event_loop_pacer
from asyncjob.kube.session import KubeSession
from asyncjob.kube.transport import Params
from asyncjob.kube.watch import WatchEvent, watch

_LOG = structlog.get_logger()

MAX_WATCH_FAILURES: Final = 5
"""Watches in a row that may fail at one version before it is given up: a server whose store was put
back to an earlier state says neither that the version has expired nor anything else for good.
"""


class ResourceEventHandler(Protocol):
    """Takes what is seen of a small collection."""

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Replace the whole collection."""

    def apply(self, event: WatchEvent) -> None:
        """Take one change: ADDED, MODIFIED or DELETED."""


class IncrementalEventHandler(ABC):
    """Takes a list object by object, so that no more than a page of it is ever held at once.

    Other tasks run in between. A list that breaks off is started again, without its end.
    """

    @abstractmethod
    def list_begins(self) -> None:
        """React to a list of the collection that is about to begin."""

    def page_begins(self) -> None:  # noqa: B027  # few need to know
        """React to a page of the list, whose objects follow."""

    @abstractmethod
    def list_object(self, obj: JsonObject) -> None:
        """Take one object of the list."""

    @abstractmethod
    def list_ends(self, version: str, /) -> None:
        """React to the end of the list, which has this version."""

    @abstractmethod
    def apply(self, event: WatchEvent) -> None:
        """Take one change: ADDED, MODIFIED or DELETED."""


class WatchHealthCallback(Protocol):
    """Told whether a watch goes on."""

    def __call__(self, *, went_well: bool) -> None:
        """Record that something came, a bookmark included, or that a list or watch has failed."""


def ignore_watch_health(*, went_well: bool) -> None:
    """Take no notice."""


async def run_informer(
    session: KubeSession,
    path: str,
    handler: ResourceEventHandler | IncrementalEventHandler,
    params: Params | None = None,
    *,
    on_watch: Callable[[], None] = lambda: None,
    on_list: Callable[[str], None] = lambda _version: None,
    transform: Callable[[JsonObject], JsonObject] = lambda obj: obj,
    on_health: WatchHealthCallback = ignore_watch_health,
    max_watch_failures: int = MAX_WATCH_FAILURES,
) -> None:
    """Keep the follower up to date until cancelled; outages are waited out, 1 to 10 s apart.

    `on_watch` is called at the beginning of each watch, `on_list` with the version of each list,
    just before the follower gets it or its end, `on_health` with each list, event, bookmark and
    failure. Large collections are read in pages; `transform` cuts each object down to what the
    follower needs. After `max_watch_failures` in a row a list is made instead of another watch.
    """
    receiver = (
        handler if isinstance(handler, IncrementalEventHandler) else _CollectingHandler(handler)
    )
    reflector = _Reflector(
        session,
        path,
        receiver,
        params or {},
        _Callbacks(on_watch, on_list, transform, on_health),
        max_failures=max_watch_failures,
    )
    pacer = event_loop_pacer()
    while True:
        pacer.start_round()
        error = await reflector.list_and_watch()
        pause = pacer.next_delay(error)
        if error is not None:
            _LOG.warning("watch interrupted", path=path, error=str(error), retry_in=round(pause, 1))
        await asyncio.sleep(pause)


async def list_into(
    session: KubeSession,
    path: str,
    handler: IncrementalEventHandler,
    params: Params | None = None,
    *,
    transform: Callable[[JsonObject], JsonObject] = lambda obj: obj,
    on_end: Callable[[str], None] = lambda _version: None,
) -> str:
    """Show a handler one consistent list, page by page, and return the version that it is of.

    `on_end` is called with the version before the handler is told. Raises what a request raises.
    """
    version, turns = "", TimeSlice()
    handler.list_begins()
    async for page in session.pages(path, params):
        handler.page_begins()
        for item in items(page, "items"):
            handler.list_object(transform(as_object(item)))
            await turns.yield_if_due()
        version = text(child(page, "metadata"), "resourceVersion")
    on_end(version)
    handler.list_ends(version)
    return version


class _CollectingHandler(IncrementalEventHandler):
    """Collects a list for a handler that takes it whole."""

    def __init__(self, handler: ResourceEventHandler) -> None:
        self._handler = handler
        self._objects: list[JsonObject] = []

    def list_begins(self) -> None:
        self._objects = []

    def list_object(self, obj: JsonObject) -> None:
        self._objects.append(obj)

    def list_ends(self, _version: str) -> None:
        objects, self._objects = self._objects, []
        self._handler.replace(objects)

    def apply(self, event: WatchEvent) -> None:
        self._handler.apply(event)


@dataclass(frozen=True, slots=True)
class _Callbacks:
    on_watch: Callable[[], None]
    on_list: Callable[[str], None]
    transform: Callable[[JsonObject], JsonObject]
    on_health: WatchHealthCallback


class _Reflector:
    """Where the watch of one collection stands."""

    def __init__(
        self,
        session: KubeSession,
        path: str,
        handler: IncrementalEventHandler,
        params: Params,
        callbacks: _Callbacks,
        *,
        max_failures: int,
    ) -> None:
        self._session = session
        self._path = path
        self._handler = handler
        self._params = params
        self._callbacks = callbacks
        self._max_failures = max_failures
        self._version: str | None = None
        self._failures = 0

    async def list_and_watch(self) -> ApiError | None:
        """Watch until the server ends it, listing first where need be; returns what went wrong.

        After an error the next watch goes on from the last version seen: a list of everything is
        what an API server that has just come back can least bear.
        """
        try:
            if self._version is None:
                self._version = await self._list()
            await self._watch(self._version)
        except ExpiredError:
            self._version = None
        except ApiError as error:
            self._callbacks.on_health(went_well=False)
            self._failures += 1
            if self._failures >= self._max_failures:
                self._version = None
            return error
        return None

    async def _list(self) -> str:
        self._failures = 0

        def on_end(version: str) -> None:
            self._callbacks.on_health(went_well=True)
            self._callbacks.on_list(version)

        return await list_into(
            self._session,
            self._path,
            self._handler,
            self._params,
            transform=self._callbacks.transform,
            on_end=on_end,
        )

    async def _watch(self, version: str) -> None:
        params = {**self._params, "resourceVersion": version}
        on_open, shape = self._callbacks.on_watch, self._callbacks.transform
        async for event in watch(self._session, self._path, params, on_open=on_open):
            self._failures = 0
            self._version = event.resource_version or self._version
            self._callbacks.on_health(went_well=True)
            if event.type != "BOOKMARK":
                self._handler.apply(WatchEvent(event.type, shape(event.object)))
