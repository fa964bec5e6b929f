"""Opens an app's resources and closes them again, the latter in bounded time.

Each lives in a task or thread of its own from opening to closing, because much that is opened in
one task (a task group, a cancel scope) or thread (a database handle) cannot be closed in another.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final

import structlog

from asyncjob.app.error_report import alone
from asyncjob.app.inspection import HandlerError, name_of
from asyncjob.app.resources import Kind, Resource, Resources, in_order
from asyncjob.app.threads import in_daemon_thread, started_future
from asyncjob.app.worker_app import WorkerApp
from asyncjob.errors import AsyncJobError

log = structlog.get_logger()

CLOSE_SECONDS: Final = 10.0
"""How long closing all resources may take; one of them at most half of what is left of it."""

_LAST_WAIT_SECONDS: Final = 0.1


class ResourceError(AsyncJobError):
    """A resource cannot be opened."""


@asynccontextmanager
async def open_resources(
    app: WorkerApp,
    *,
    overrides: Mapping[Any, object] | None = None,
    types: Iterable[Any] | None = None,
) -> AsyncIterator[Resources]:
    """Open the resources of an app, and close them in reverse order at the end.

    `overrides` are used instead of what the app declares, by type; what only they would need is
    opened all the same, unless `types` names those that are wanted. Raises HandlerError where
    resources are missing or need each other, ResourceError where one cannot be opened; those
    opened before it are closed.
    """
    opened = OpenResources(app, overrides)
    try:
        yield await opened.open(types)
    finally:
        await opened.close()


class OpenResources:
    """The open resources of one process."""

    def __init__(self, app: WorkerApp, overrides: Mapping[Any, object] | None = None) -> None:
        self._app = app
        self._contents = dict(overrides or {})
        self._lives: list[_Life] = []

    async def open(self, types: Iterable[Any] | None = None) -> Resources:
        """Open all resources, or those of some types, each after those that it needs."""
        for resource in self._wanted(types):
            arguments = Resources(self._contents).arguments(resource.needs)
            life = _Life(resource, arguments)
            self._lives.append(life)
            self._contents[resource.type] = await life.begin()
        return Resources(self._contents)

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Close in reverse order; what hangs is given up, what fails is logged."""
        give_up_at = asyncio.get_running_loop().time() + seconds
        for later, life in reversed(list(enumerate(self._lives))):
            left = give_up_at - asyncio.get_running_loop().time()
            await life.end(left / 2 if later else left)

    def _wanted(self, types: Iterable[Any] | None) -> Iterable[Resource]:
        declared, given = self._app.resources, self._contents
        unknown = [kind for kind in given if kind not in {*declared, *self._app.needed_types()}]
        if unknown:
            raise HandlerError(f"nothing needs a resource of type {name_of(unknown[0])}")
        if types is None:
            self._app.check(given)
        return in_order(declared, given, declared if types is None else types)


class _Life:
    """One resource from opening to closing."""

    def __init__(self, resource: Resource, arguments: Mapping[str, object]) -> None:
        self._resource = resource
        self._make = partial(resource.function, **arguments)
        self._value = started_future()
        self._ending = threading.Event()
        self._ending_here = asyncio.Event()
        self.over: asyncio.Future[None] = self._start()

    async def begin(self) -> object:
        """Return what was opened; raises ResourceError."""
        ready = asyncio.wrap_future(self._value)
        try:
            await asyncio.wait({ready, self.over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if not self._value.done():
            raise ResourceError(f"{self._resource.who} cannot be opened: {_why(self.over)}")
        if self._resource.kind in {Kind.ASYNC_GENERATOR, Kind.GENERATOR}:
            self.over.add_done_callback(self._note_end)
        return self._value.result()

    async def end(self, seconds: float) -> None:
        """Close; give up after so many seconds."""
        self._ending.set()
        self._ending_here.set()
        if not self._value.done():
            self.over.cancel()
        await asyncio.wait({self.over}, timeout=max(0.0, seconds))
        if not self.over.done():
            log.error("resource does not close and is given up", resource=self._resource.who)
            self.over.cancel()
            await asyncio.wait({self.over}, timeout=_LAST_WAIT_SECONDS)
        elif self._value.done() and (self.over.cancelled() or self.over.exception()):
            log.error("resource failed", resource=self._resource.who, error=_why(self.over))

    def _start(self) -> asyncio.Future[None]:
        match self._resource.kind:
            case Kind.ASYNC_GENERATOR | Kind.ASYNC:
                return asyncio.ensure_future(self._live())
            case Kind.GENERATOR | Kind.PLAIN:
                return in_daemon_thread(self._live_in_thread, "resource")

    async def _live(self) -> None:
        if self._resource.kind is Kind.ASYNC:
            self._value.set_result(await self._make())
            return
        async with asynccontextmanager(self._make)() as value:
            self._value.set_result(value)
            await self._ending_here.wait()

    def _live_in_thread(self) -> None:
        if self._resource.kind is Kind.PLAIN:
            self._value.set_result(self._make())
            return
        with contextmanager(self._make)() as value:
            self._value.set_result(value)
            self._ending.wait()

    def _note_end(self, _: asyncio.Future[None]) -> None:
        if not self._ending.is_set():
            who, error = self._resource.who, _why(self.over)
            log.error("resource has ended while in use", resource=who, error=error)


def _why(over: asyncio.Future[None]) -> str:
    error = None if over.cancelled() else over.exception()
    error = alone(error) if error else None
    text = f"{type(error).__name__}: {error}" if error else "it was cancelled"
    return " ".join(text.split())
