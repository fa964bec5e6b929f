"""Keeps a handler informed of a collection: a list, then a watch, repeated until cancelled."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Final, Protocol

import structlog

from asyncjob.errors import ApiError, ExpiredError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube.pacing import TimeSlice, event_loop_pacer
from asyncjob.kube.session import KubeSession
from asyncjob.kube.transport import Params
from asyncjob.kube.watch import WatchEvent, open_watch, read_events

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


class WatchObserver:
    """Sees how the list and watch of a collection go; each class overrides what it needs."""

    def watch_opened(self) -> None:
        """React to a watch that the server has agreed to."""

    def listed(self, version: str, /) -> None:
        """React to a list of this version, just before the handler gets it or its end."""

    def progressed(self) -> None:
        """React to a list or an event that came, a bookmark included."""

    def failed(self) -> None:
        """React to a list or a watch that has failed."""


class OpenedWatchCounter(WatchObserver):
    """Calls `count` for each watch that is opened, such as the `inc` of a metric."""

    def __init__(self, count: Callable[[], object]) -> None:
        self._count = count

    def watch_opened(self) -> None:
        """Count it."""
        self._count()


UNOBSERVED: Final = WatchObserver()
"""For informers that nobody needs to know more of than their handler is told."""


async def run_informer(
    session: KubeSession,
    path: str,
    handler: ResourceEventHandler | IncrementalEventHandler,
    params: Params | None = None,
    *,
    observer: WatchObserver,
    transform: Callable[[JsonObject], JsonObject] = lambda obj: obj,
    max_watch_failures: int = MAX_WATCH_FAILURES,
) -> None:
    """Keep the handler up to date until cancelled; outages are waited out, 1 to 10 s apart.

    Large collections are read in pages; `transform` cuts each object down to what the handler
    needs. After `max_watch_failures` in a row a list is made instead of another watch.
    """
    receiver = (
        handler if isinstance(handler, IncrementalEventHandler) else _CollectingHandler(handler)
    )
    reflector = _Reflector(
        session,
        path,
        receiver,
        params or {},
        observer=observer,
        transform=transform,
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
    observer: WatchObserver = UNOBSERVED,
    transform: Callable[[JsonObject], JsonObject] = lambda obj: obj,
) -> str:
    """Show a handler one consistent list, page by page, and return the version that it is of.

    Raises what a request raises.
    """
    version, turns = "", TimeSlice()
    handler.list_begins()
    async for page in session.pages(path, params):
        handler.page_begins()
        for item in items(page, "items"):
            handler.list_object(transform(as_object(item)))
            await turns.yield_if_due()
        version = text(child(page, "metadata"), "resourceVersion")
    observer.progressed()
    observer.listed(version)
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


class _Reflector:
    """Where the watch of one collection stands."""

    def __init__(
        self,
        session: KubeSession,
        path: str,
        handler: IncrementalEventHandler,
        params: Params,
        *,
        observer: WatchObserver,
        transform: Callable[[JsonObject], JsonObject],
        max_failures: int,
    ) -> None:
        self._session = session
        self._path = path
        self._handler = handler
        self._params = params
        self._observer = observer
        self._transform = transform
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
            self._observer.failed()
            self._failures += 1
            if self._failures >= self._max_failures:
                self._version = None
            return error
        return None

    async def _list(self) -> str:
        self._failures = 0
        return await list_into(
            self._session,
            self._path,
            self._handler,
            self._params,
            observer=self._observer,
            transform=self._transform,
        )

    async def _watch(self, version: str) -> None:
        params = {**self._params, "resourceVersion": version}
        response = await open_watch(self._session, self._path, params)
        self._observer.watch_opened()
        async with aclosing(read_events(response)) as events:
            async for event in events:
                self._failures = 0
                self._version = event.resource_version or self._version
                self._observer.progressed()
                if event.type != "BOOKMARK":
                    self._handler.apply(WatchEvent(event.type, self._transform(event.object)))
