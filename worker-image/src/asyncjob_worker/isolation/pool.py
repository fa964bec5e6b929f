"""The children of one worker: started when first needed, kept warm, ended in order."""

import asyncio
from collections.abc import Coroutine

import structlog

from asyncjob_worker.errors import WorkerError
from asyncjob_worker.isolation.messages import ProcessConfig
from asyncjob_worker.isolation.process import HandlerProcess

log = structlog.get_logger()

IDLE_SECONDS = 300.0
"""A child without a job for so long is ended."""

END_SECONDS = 3.0
"""How long a child may take to end when it is asked to."""


class ProcessPool:
    """Up to `max_size` children.

    `jobs_per_process` is how many jobs one may run, 0 for any number.
    """

    def __init__(self, config: ProcessConfig, max_size: int, *, jobs_per_process: int = 0) -> None:
        self._config = config
        self._max_size = max_size
        self._jobs_per_process = jobs_per_process
        self._processes: set[HandlerProcess] = set()
        self._idle: dict[HandlerProcess, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def acquire(self, memory_mib: int | None) -> HandlerProcess:
        """Return a child for one job with this memory limit; raises ProcessStartError."""
        for child in reversed(self._idle):
            if child.fits(memory_mib):
                self._remove_idle(child)
                return child
        if self._idle and len(self._processes) >= self._max_size:
            self._retire(next(iter(self._idle)))
        return await self._start()

    def release(self, process: HandlerProcess, *, usable: bool) -> None:
        """Take back a child after its job; one that is not usable is killed."""
        process.jobs_run += 1
        if not usable or self._closed:
            process.kill()
        elif process.jobs_run == self._jobs_per_process or process.memory_usage.spent:
            self._in_background(process.end(END_SECONDS))
        elif not process.exited.done():
            loop = asyncio.get_running_loop()
            self._idle[process] = loop.call_later(IDLE_SECONDS, self._retire, process)

    async def close(self) -> None:
        """End all children: ask those without a job, kill the others, wait until all are gone."""
        self._closed = True
        for child in self._processes - self._idle.keys():
            child.kill()
        for child in list(self._idle):
            self._retire(child)
        gone = [child.exited for child in self._processes]
        await asyncio.gather(*self._tasks)
        if gone:
            await asyncio.wait(gone, timeout=END_SECONDS)
        await asyncio.sleep(0)  # the sockets are closed in the next turn of the loop

    async def _start(self) -> HandlerProcess:
        if self._closed:
            raise WorkerError("the worker has ended its processes")
        child = await HandlerProcess.start(self._config)
        log.info("process for handlers started", pid=child.pid)
        self._processes.add(child)
        child.exited.add_done_callback(lambda _: self._on_exited(child))
        return child

    def _retire(self, process: HandlerProcess) -> None:
        self._remove_idle(process)
        self._in_background(process.end(END_SECONDS))

    def _remove_idle(self, process: HandlerProcess) -> None:
        self._idle.pop(process).cancel()

    def _on_exited(self, process: HandlerProcess) -> None:
        self._processes.discard(process)
        if process in self._idle:
            log.warning("an idle process for handlers has died", pid=process.pid)
            self._remove_idle(process)
            process.kill()

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
