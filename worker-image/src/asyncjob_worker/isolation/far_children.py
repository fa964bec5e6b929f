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
from asyncjob.app.child_order import ChildManifest
from asyncjob.app.child_view import ChildRef, ChildView
from asyncjob.json_types import Json, JsonObject, child
from asyncjob_worker.isolation import questions, typed_errors
from asyncjob_worker.isolation.link import WorkerConnection
from asyncjob_worker.isolation.questions import (
    ChildJobRequest,
    ListRequest,
    SubmitRequest,
    WaitRequest,
)

T = TypeVar("T")

_PendingRequest = tuple["concurrent.futures.Future[Any]", Callable[[Json], Any]]


class RemoteChildJobs:
    """The children of one job, for any thread; implements ChildJobs."""

    def __init__(self, connection: WorkerConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._pending: dict[int, _PendingRequest] = {}
        self._closed = False

    def submit(self, order: ChildManifest) -> "concurrent.futures.Future[ChildRef]":
        """Have the worker create the job."""
        return self._request(SubmitRequest(order), questions.read_ref)

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Have the worker look until the job has finished."""
        return self._request(WaitRequest(child, timeout), questions.read_view)

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """Have the worker look at all children."""
        return self._request(ListRequest(), questions.read_views)

    def stop(self) -> None:
        """Cancel what is not answered yet; whether more may be asked is the worker's decision."""
        with self._lock:
            waiting = list(self._pending.values())
        for future, _ in waiting:
            future.cancel()

    def close(self) -> None:
        """Ask nothing more: what comes later would be another job's."""
        with self._lock:
            self._closed = True
            waiting, self._pending = self._pending, {}
        for future, _ in waiting.values():
            future.cancel()

    def handle_answer(self, message: JsonObject) -> None:
        """Take an answer; one to a question called back, or of an earlier job, is dropped."""
        with self._lock:
            future, read = self._pending.pop(questions.read_number(message), (None, None))
        if future is None or read is None or not future.set_running_or_notify_cancel():
            return
        if "error" in message:
            future.set_exception(typed_errors.error_from_json(child(message, "error")))
        else:
            future.set_result(read(message.get("value")))

    def _request(
        self, request: ChildJobRequest, read: Callable[[Json], T]
    ) -> "concurrent.futures.Future[T]":
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        with self._lock:
            if self._closed:
                future.set_exception(AttemptOverError("the attempt is over: it has ended"))
                return future
            number = next(self._numbers)
            self._pending[number] = (future, read)
            self._connection.send(questions.ask_message(number, request))
        future.add_done_callback(partial(self._cancel_request, number))
        return future

    def _cancel_request(self, number: int, future: "concurrent.futures.Future[Any]") -> None:
        """Call a question back that nobody waits for any more."""
        if not future.cancelled():
            return
        with self._lock:
            if self._pending.pop(number, None) is not None:
                self._connection.send(questions.forget_message(number))
