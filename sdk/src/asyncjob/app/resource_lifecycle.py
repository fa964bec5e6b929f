"""Opens an app's resources and closes them again, the latter in bounded time.

Each has a task or thread of its own from opening to closing, because much that is opened in one
task (a task group, a cancel scope) or thread (a database handle) cannot be closed in another.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final

import structlog

from asyncjob.app.error_report import unwrap_single
from asyncjob.app.inspection import HandlerError, type_name
from asyncjob.app.resources import ResourceDefinition, ResourceKind, Resources, in_dependency_order
from asyncjob.app.worker_app import WorkerApp
from asyncjob.daemon_threads import run_in_daemon_thread, uncancellable_future
from asyncjob.errors import AsyncJobError

log = structlog.get_logger()

CLOSE_SECONDS: Final = 10.0
"""How long closing all resources may take; one of them at most half of what is left of it."""

_CANCEL_WAIT_SECONDS: Final = 0.1


class ResourceError(AsyncJobError):
    """A resource cannot be opened."""

    code = "resource-not-opened"


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
        self._values_by_type = dict(overrides or {})
        self._lifecycles: list[_ResourceLifecycle] = []

    async def open(self, types: Iterable[Any] | None = None) -> Resources:
        """Open all resources, or those of some types, each after those that it needs."""
        for resource in self._wanted(types):
            arguments = Resources(self._values_by_type).arguments(resource.needs)
            life = _ResourceLifecycle(resource, arguments)
            self._lifecycles.append(life)
            self._values_by_type[resource.type] = await life.open()
        return Resources(self._values_by_type)

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Close in reverse order; what hangs is given up, what fails is logged."""
        give_up_at = asyncio.get_running_loop().time() + seconds
        for later, life in reversed(list(enumerate(self._lifecycles))):
            left = give_up_at - asyncio.get_running_loop().time()
            await life.close(left / 2 if later else left)

    def _wanted(self, types: Iterable[Any] | None) -> Iterable[ResourceDefinition]:
        declared, given = self._app.resources, self._values_by_type
        unknown = [kind for kind in given if kind not in {*declared, *self._app.needed_types()}]
        if unknown:
            raise HandlerError(f"nothing needs a resource of type {type_name(unknown[0])}")
        if types is None:
            self._app.check(given)
        return in_dependency_order(declared, given, declared if types is None else types)


class _ResourceLifecycle:
    """One resource from opening to closing."""

    def __init__(self, resource: ResourceDefinition, arguments: Mapping[str, object]) -> None:
        self._resource = resource
        self._make = partial(resource.function, **arguments)
        self._value = uncancellable_future()
        self._close_requested = threading.Event()
        self._close_requested_in_loop = asyncio.Event()
        self.finished: asyncio.Future[None] = self._start()

    async def open(self) -> object:
        """Return what was opened; raises ResourceError."""
        ready = asyncio.wrap_future(self._value)
        try:
            await asyncio.wait({ready, self.finished}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if not self._value.done():
            raise ResourceError(
                f"{self._resource.label} cannot be opened: {_error_text(self.finished)}"
            )
        if self._resource.kind in {ResourceKind.ASYNC_GENERATOR, ResourceKind.GENERATOR}:
            self.finished.add_done_callback(self._log_early_end)
        return self._value.result()

    async def close(self, seconds: float) -> None:
        """Close; give up after `seconds`."""
        self._close_requested.set()
        self._close_requested_in_loop.set()
        if not self._value.done():
            self.finished.cancel()
        await asyncio.wait({self.finished}, timeout=max(0.0, seconds))
        if not self.finished.done():
            log.error("resource does not close and is given up", resource=self._resource.label)
            self.finished.cancel()
            await asyncio.wait({self.finished}, timeout=_CANCEL_WAIT_SECONDS)
        elif self._value.done() and (self.finished.cancelled() or self.finished.exception()):
            log.error(
                "resource failed", resource=self._resource.label, error=_error_text(self.finished)
            )

    def _start(self) -> asyncio.Future[None]:
        match self._resource.kind:
            case ResourceKind.ASYNC_GENERATOR | ResourceKind.ASYNC:
                return asyncio.ensure_future(self._run())
            case ResourceKind.GENERATOR | ResourceKind.PLAIN:
                return run_in_daemon_thread(self._run_in_thread, "resource")

    async def _run(self) -> None:
        if self._resource.kind is ResourceKind.ASYNC:
            self._value.set_result(await self._make())
            return
        async with asynccontextmanager(self._make)() as value:
            self._value.set_result(value)
            await self._close_requested_in_loop.wait()

    def _run_in_thread(self) -> None:
        if self._resource.kind is ResourceKind.PLAIN:
            self._value.set_result(self._make())
            return
        with contextmanager(self._make)() as value:
            self._value.set_result(value)
            self._close_requested.wait()

    def _log_early_end(self, _: asyncio.Future[None]) -> None:
        if not self._close_requested.is_set():
            who, error = self._resource.label, _error_text(self.finished)
            log.error("resource has ended while in use", resource=who, error=error)


def _error_text(finished: asyncio.Future[None]) -> str:
    error = None if finished.cancelled() else finished.exception()
    error = unwrap_single(error) if error else None
    text = f"{type(error).__name__}: {error}" if error else "it was cancelled"
    return " ".join(text.split())
