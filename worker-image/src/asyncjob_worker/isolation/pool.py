"""The children of one worker: started when first needed, kept warm, ended in order."""

import asyncio
from collections.abc import Coroutine

import structlog

from asyncjob_worker.errors import WorkerError
from asyncjob_worker.isolation.messages import Begin
from asyncjob_worker.isolation.process import Child

log = structlog.get_logger()

IDLE_SECONDS = 300.0
"""A child without a job for so long is ended."""

END_SECONDS = 3.0
"""How long a child may take to end when it is asked to."""


class Pool:
    """Up to `most` children. `jobs_each` is how many jobs one may run, 0 for any number."""

    def __init__(self, begin: Begin, most: int, *, jobs_each: int = 0) -> None:
        self._begin = begin
        self._most = most
        self._jobs_each = jobs_each
        self._children: set[Child] = set()
        self._idle: dict[Child, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def take(self, memory_mib: int | None) -> Child:
        """Return a child for one job with this memory limit; raises ProcessStartError."""
        for child in reversed(self._idle):
            if child.fits(memory_mib):
                self._wake(child)
                return child
        if self._idle and len(self._children) >= self._most:
            self._retire(next(iter(self._idle)))
        return await self._start()

    def put_back(self, child: Child, *, usable: bool) -> None:
        """Take back a child after its job; one that is not usable is killed."""
        child.jobs += 1
        if not usable or self._closed:
            child.kill()
        elif child.jobs == self._jobs_each or child.footprint.spent:
            self._in_background(child.end(END_SECONDS))
        elif not child.exited.done():
            loop = asyncio.get_running_loop()
            self._idle[child] = loop.call_later(IDLE_SECONDS, self._retire, child)

    async def close(self) -> None:
        """End all children: ask those without a job, kill the others, wait until all are gone."""
        self._closed = True
        for child in self._children - self._idle.keys():
            child.kill()
        for child in list(self._idle):
            self._retire(child)
        gone = [child.exited for child in self._children]
        await asyncio.gather(*self._tasks)
        if gone:
            await asyncio.wait(gone, timeout=END_SECONDS)
        await asyncio.sleep(0)  # the sockets are closed in the next turn of the loop

    async def _start(self) -> Child:
        if self._closed:
            raise WorkerError("the worker has ended its processes")
        child = await Child.start(self._begin)
        log.info("process for handlers started", pid=child.pid)
        self._children.add(child)
        child.exited.add_done_callback(lambda _: self._forget(child))
        return child

    def _retire(self, child: Child) -> None:
        self._wake(child)
        self._in_background(child.end(END_SECONDS))

    def _wake(self, child: Child) -> None:
        self._idle.pop(child).cancel()

    def _forget(self, child: Child) -> None:
        self._children.discard(child)
        if child in self._idle:
            log.warning("an idle process for handlers has died", pid=child.pid)
            self._wake(child)
            child.kill()

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
