"""The resources of one child process: opened for the first job that needs them, closed at its end.

Only what its handlers need is opened: an app has more, and each process would hold it.
"""

import asyncio
import contextvars
from dataclasses import replace
from functools import partial

from asyncjob.app import Handler, Resources, WorkerApp
from asyncjob.app.opening import OpenResources
from asyncjob.app.resources import NO_RESOURCES
from asyncjob_worker.isolation.memory import allocated
from asyncjob_worker.isolation.messages import MemoryUsage

CLOSE_SECONDS = 2.0
"""How long closing all of them may take: less than the worker waits for a child to end."""


class ProcessResources:
    """Opens resources and keeps in mind what they take: no job is to answer for that."""

    def __init__(self, app: WorkerApp) -> None:
        self._open_resources = OpenResources(app)
        self._resources = NO_RESOURCES
        self._baseline = allocated()
        self._failed = False

    def memory_usage(self, *, spent: bool = False) -> MemoryUsage:
        """Return what the process holds; spent also after a resource could not be opened."""
        return MemoryUsage(allocated(), self._baseline, spent or self._failed)

    def start_opening(self, handler: Handler) -> "asyncio.Task[Resources]":
        """Open what a handler needs and what that needs; raises ResourceError."""
        # Without the context of the job that happens to be the first: they outlive it.
        work, context = self._open(handler), contextvars.Context()
        return asyncio.get_running_loop().create_task(work, context=context)

    async def close(self) -> None:
        """Close in reverse order."""
        await self._open_resources.close(CLOSE_SECONDS)

    async def _open(self, handler: Handler) -> Resources:
        before, self._failed = allocated(), True
        types = [need.type for need in handler.needs.values()]
        resources = await self._open_resources.open(types)
        self._failed = False
        self._baseline += max(0, allocated() - before)
        return resources


def with_resources(handler: Handler, resources: Resources) -> Handler:
    """Return the handler with its resources filled in."""
    arguments = resources.arguments(handler.needs)
    return replace(handler, function=partial(handler.function, **arguments))
