"""Reads what the worker tells a child, in a thread of its own: a handler may block the event loop.

Here the child learns that it is to stop, and that its worker is gone.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from asyncjob.json_types import JsonObject
from asyncjob_worker.isolation.far_children import RemoteChildJobs
from asyncjob_worker.isolation.lifeline import exit_group
from asyncjob_worker.isolation.link import ReportSender, WorkerConnection
from asyncjob_worker.isolation.messages import MessageType, RunRequest, message_type, read_run


@dataclass(slots=True)
class ActiveRun:
    """One job to run. `interrupt` is there while its handler is at work."""

    request: RunRequest
    reports: ReportSender
    children: RemoteChildJobs
    stopping: threading.Event = field(default_factory=threading.Event)
    interrupt: Callable[[], object] | None = None

    def close(self) -> None:
        """Hand on and ask nothing more."""
        self.reports.close()
        self.children.close()


class MessageReader:
    """Turns messages into orders for the event loop; None is the end."""

    def __init__(self, connection: WorkerConnection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._current: ActiveRun | None = None
        self.runs: asyncio.Queue[ActiveRun | None] = asyncio.Queue()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._read, name="inbox", daemon=True).start()

    def _read(self) -> None:
        try:
            for message in self._connection.messages():
                self._handle(message)
        finally:
            exit_group()

    def _handle(self, message: JsonObject) -> None:
        match message_type(message):
            case MessageType.RUN:
                reports, children = (
                    ReportSender(self._connection),
                    RemoteChildJobs(self._connection),
                )
                self._current = ActiveRun(read_run(message), reports, children)
                self._loop.call_soon_threadsafe(self.runs.put_nowait, self._current)
            case MessageType.STOP if self._current:
                # At once, for handlers that look: the event loop may be blocked by this one.
                self._current.stopping.set()
                self._loop.call_soon_threadsafe(_interrupt, self._current)
            case MessageType.TAKEN if self._current:
                self._current.reports.acknowledged()
            case MessageType.ANSWER if self._current:
                self._current.children.handle_answer(message)
            case MessageType.END:
                self._loop.call_soon_threadsafe(self.runs.put_nowait, None)


def _interrupt(active: ActiveRun) -> None:
    if active.interrupt is not None:
        active.interrupt()
