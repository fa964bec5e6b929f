"""One job of a handler with a process of its own, from the worker's side."""

import asyncio
import threading
from typing import cast

import structlog

from asyncjob.app import Category, Handler, JobContext
from asyncjob.app.error_report import ErrorKind, ErrorReport, HandlerCrashedError, ReportedError
from asyncjob.json_types import Json, JsonObject
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.isolation import messages
from asyncjob_worker.isolation.desk import Desk
from asyncjob_worker.isolation.frames import FrameTooLargeError, encode
from asyncjob_worker.isolation.messages import STOP, TAKEN, Run, Word
from asyncjob_worker.isolation.pool import Pool
from asyncjob_worker.isolation.process import Child

log = structlog.get_logger()

REPORT_SECONDS = 0.05
"""A child hands on what its handler reports at most this often."""

_ENDINGS = (Word.DONE, Word.FAILED)


class Errand:
    """Runs one job in a child of the pool, and hands on what its handler reports."""

    def __init__(self, pool: Pool, handler: Handler, context: JobContext, payload: object) -> None:
        self._pool = pool
        self._handler = handler
        self._context = context
        self._payload = payload
        self._loop = asyncio.get_running_loop()
        self._child: Child | None = None
        self._handing_back = threading.Lock()
        self._next_taken = 0.0

    async def run(self) -> object:
        """Return the handler's result as JSON.

        Raises ReportedError for what the handler raises, HandlerCrashedError if its process dies,
        ProcessStartError if there is none.
        """
        job = self._encode()
        child = await self._pool.take(self._handler.memory_mib)
        usable = False
        try:
            ending = await self._converse(child, job)
            child.footprint = messages.read_footprint(ending)
            usable = True
        except HandlerCrashedError as error:
            self._log_death(child, error)
            raise
        finally:
            with self._handing_back:
                self._child = None
            self._pool.put_back(child, usable=usable)
        if messages.word(ending) == Word.FAILED:
            raise ReportedError(messages.read_error(ending))
        return ending["result"]

    def stop(self) -> bool:
        """Ask the handler to stop; False if it has not begun."""
        if self._child is not None:
            self._child.send(STOP)
        return self._child is not None

    def kill(self) -> bool:
        """Kill the handler's process and what it has started; False if it has not begun."""
        if self._child is not None:
            self._child.kill()
        return self._child is not None

    def kill_process(self) -> None:
        """Kill the handler's process from any thread; never that of the child's next job."""
        with self._handing_back:
            if self._child is not None:
                self._child.kill_process()

    async def _converse(self, child: Child, job: bytes) -> JsonObject:
        """Send the job; return how it ended."""
        child.write(job)
        self._child = child
        desk = Desk(self._context, child.write)
        try:
            while (word := messages.word(message := await child.receive())) not in _ENDINGS:
                if word == Word.REPORT:
                    self._report(message)
                    self._answer(child)
                else:
                    desk.take(message)
        finally:
            desk.close()
        return message

    def _log_death(self, child: Child, error: HandlerCrashedError) -> None:
        if not self._context.cancelled:
            how, job = str(error), self._context.name
            log.error("handler's process died", job=job, pid=child.pid, how=how)

    def _encode(self) -> bytes:
        ends_at = lease_seconds() + self._context.seconds_left
        limit = self._handler.memory_mib
        job = Run(self._context.info, cast("Json", self._payload), ends_at, limit)
        try:
            return encode(messages.run(job))
        except FrameTooLargeError as error:
            raise ReportedError(_too_large(error)) from error

    def _report(self, message: JsonObject) -> None:
        if "checkpoint" in message:
            self._context.checkpoint(message["checkpoint"])
        progress = message.get("progress")
        if isinstance(progress, list):
            percent, text = progress
            self._context.progress(percent, text)

    def _answer(self, child: Child) -> None:
        """Ask for the next report: at once, unless the last was just now."""
        now = self._loop.time()
        at = max(now, self._next_taken)
        self._next_taken = at + REPORT_SECONDS
        if at == now:
            child.send(TAKEN)
        else:
            self._loop.call_at(at, child.send, TAKEN)


def _too_large(error: FrameTooLargeError) -> ErrorReport:
    return ErrorReport(
        ErrorKind.PAYLOAD, type(error).__name__, Category.VALIDATION, f"the payload: {error}"
    )
