"""Reads what the worker tells a child, in a thread of its own: a handler may block the event loop.

Here the child learns that it is to stop, and that its worker is gone.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from asyncjob.json_types import JsonObject
from asyncjob_worker.isolation.far_children import FarChildren
from asyncjob_worker.isolation.lifeline import leave
from asyncjob_worker.isolation.link import Link, Reports
from asyncjob_worker.isolation.messages import Run, Word, read_run, word


@dataclass(slots=True)
class Order:
    """One job to run. `interrupt` is there while its handler is at work."""

    run: Run
    reports: Reports
    children: FarChildren
    stopping: threading.Event = field(default_factory=threading.Event)
    interrupt: Callable[[], object] | None = None

    def close(self) -> None:
        """Hand on and ask nothing more."""
        self.reports.close()
        self.children.close()


class Inbox:
    """Turns messages into orders for the event loop; None is the end."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._current: Order | None = None
        self.orders: asyncio.Queue[Order | None] = asyncio.Queue()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._read, name="inbox", daemon=True).start()

    def _read(self) -> None:
        try:
            for message in self._link.messages():
                self._take(message)
        finally:
            leave()

    def _take(self, message: JsonObject) -> None:
        match word(message):
            case Word.RUN:
                reports, children = Reports(self._link), FarChildren(self._link)
                self._current = Order(read_run(message), reports, children)
                self._loop.call_soon_threadsafe(self.orders.put_nowait, self._current)
            case Word.STOP if self._current:
                # At once, for handlers that look: the event loop may be blocked by this one.
                self._current.stopping.set()
                self._loop.call_soon_threadsafe(_interrupt, self._current)
            case Word.TAKEN if self._current:
                self._current.reports.taken()
            case Word.ANSWER if self._current:
                self._current.children.take(message)
            case Word.END:
                self._loop.call_soon_threadsafe(self.orders.put_nowait, None)


def _interrupt(order: Order) -> None:
    if order.interrupt is not None:
        order.interrupt()
