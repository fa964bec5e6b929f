"""The children of a job whose handler runs in a child process: the worker is asked for everything.

The worker alone decides what may still be submitted: it holds the lease.
"""

import concurrent.futures
import itertools
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from asyncjob.app.child_errors import AttemptOverError
from asyncjob.app.child_order import ChildOrder
from asyncjob.app.child_view import ChildRef, ChildView
from asyncjob.json_types import Json, JsonObject, child
from asyncjob_worker.isolation import questions, typed_errors
from asyncjob_worker.isolation.link import Link
from asyncjob_worker.isolation.questions import List, Question, Submit, Wait

T = TypeVar("T")

_Open = tuple["concurrent.futures.Future[Any]", Callable[[Json], Any]]


class FarChildren:
    """The children of one job, for any thread; implements ChildJobs."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._open: dict[int, _Open] = {}
        self._closed = False

    def submit(self, order: ChildOrder) -> "concurrent.futures.Future[ChildRef]":
        """Have the worker create the job."""
        return self._ask(Submit(order), questions.read_ref)

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Have the worker look until the job has finished."""
        return self._ask(Wait(child, timeout), questions.read_view)

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """Have the worker look at all children."""
        return self._ask(List(), questions.read_views)

    def stop(self) -> None:
        """Cancel what is not answered yet; whether more may be asked is the worker's decision."""
        with self._lock:
            waiting = list(self._open.values())
        for future, _ in waiting:
            future.cancel()

    def close(self) -> None:
        """Ask nothing more: what comes later would be another job's."""
        with self._lock:
            self._closed = True
            waiting, self._open = self._open, {}
        for future, _ in waiting.values():
            future.cancel()

    def take(self, message: JsonObject) -> None:
        """Take an answer; one to a question called back, or of an earlier job, is dropped."""
        with self._lock:
            future, read = self._open.pop(questions.read_number(message), (None, None))
        if future is None or read is None or not future.set_running_or_notify_cancel():
            return
        if "error" in message:
            future.set_exception(typed_errors.from_json(child(message, "error")))
        else:
            future.set_result(read(message.get("value")))

    def _ask(self, question: Question, read: Callable[[Json], T]) -> "concurrent.futures.Future[T]":
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        with self._lock:
            if self._closed:
                future.set_exception(AttemptOverError("the attempt is over: it has ended"))
                return future
            number = next(self._numbers)
            self._open[number] = (future, read)
            self._link.send(questions.ask(number, question))
        future.add_done_callback(partial(self._forget, number))
        return future

    def _forget(self, number: int, future: "concurrent.futures.Future[Any]") -> None:
        """Call a question back that nobody waits for any more."""
        if not future.cancelled():
            return
        with self._lock:
            if self._open.pop(number, None) is not None:
                self._link.send(questions.forget(number))
