"""A handler process's connection to its worker.

Messages are read in a thread of their own, because a handler may block the event loop. Progress and
checkpoints are sent to the worker, and so are requests about child jobs and steps, because the
worker holds the lease and alone decides what may still be submitted and stored. Files of items are
read by the worker, too: it knows what may be read, and its drivers take no memory in here.

The process ends with its worker: on Linux the kernel kills it (PR_SET_PDEATHSIG), even if it is
blocked in native code; elsewhere, and for the processes that the handler has started, the end of
the socket does it.

Reports are sent one at a time. Those that come before the last one is acknowledged wait, and the
newest wins: a handler that reports all the time costs the worker twenty messages a second.
"""

import asyncio
import concurrent.futures
import ctypes
import itertools
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any, Final, NoReturn, TypeVar

from asyncjob.app.child_jobs import ChildRef, ChildView
from asyncjob.app.child_manifest import ChildManifest
from asyncjob.app.errors import AttemptOverError
from asyncjob.json_types import Json, JsonObject, as_object, child
from asyncjob.lifecycle.phase_change import truncate
from asyncjob.offload.store import ObjectStat
from asyncjob_worker.isolation import protocol
from asyncjob_worker.isolation.protocol import (
    FileRequest,
    FrameDecoder,
    ListRequest,
    MessageType,
    ResultRequest,
    RunRequest,
    StepRequest,
    StepVerb,
    SubmitRequest,
    WaitRequest,
    WorkerRequest,
    encode,
    message_type,
    read_run,
)

T = TypeVar("T")

_PendingRequest = tuple["concurrent.futures.Future[Any]", Callable[[Json], Any], WorkerRequest]

_READ_BYTES = 64 * 1024

_PR_SET_PDEATHSIG: Final = 1

EXIT_ORPHANED: Final = 70
"""Exit code of a process whose worker is gone, where it does not lead a group to kill."""


class WorkerConnection:
    """The socket to the worker."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._send_lock = threading.Lock()
        self._incoming = self._receive()

    def send(self, message: JsonObject) -> None:
        """Send a message; raises FrameTooLargeError, and OSError once the worker is gone."""
        frame = encode(message)
        with self._send_lock:
            self._connection.sendall(frame)

    def messages(self) -> Iterator[JsonObject]:
        """Return the iterator over the worker's messages, the same for each caller."""
        return self._incoming

    def _receive(self) -> Iterator[JsonObject]:
        decoder = FrameDecoder()
        while piece := self._connection.recv(_READ_BYTES):
            yield from decoder.feed(piece)


class ReportSender:
    """Sends what one job's handler reports; a ReportSink for any thread."""

    def __init__(self, connection: WorkerConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._pending: dict[str, Json] = {}
        self._awaiting_ack = False
        self._closed = False

    def progress(self, percent: int, message: str | None) -> None:
        """Send the handler's progress, now or after the acknowledgement of the last report."""
        self._put("progress", [percent, message and truncate(message)])

    def checkpoint(self, value: Json) -> None:
        """Send the handler's checkpoint, now or after the acknowledgement of the last report."""
        self._put("checkpoint", value)

    def acknowledged(self) -> None:
        """Send what has come since the last report, which the worker has acknowledged."""
        with self._lock:
            self._awaiting_ack = False
            self._flush()

    def close(self) -> None:
        """Send what is left and drop what comes later: by then the process runs another job."""
        with self._lock:
            self._awaiting_ack = False
            self._flush()
            self._closed = True

    def _put(self, kind: str, value: Json) -> None:
        with self._lock:
            if self._closed:
                return
            self._pending[kind] = value
            if not self._awaiting_ack:
                self._flush()

    def _flush(self) -> None:
        if not self._pending:
            return
        reports, self._pending = self._pending, {}
        self._connection.send({"is": MessageType.REPORT, **reports})
        self._awaiting_ack = True


class RemoteChildJobs:
    """The child jobs of one job, by requests to the worker; ChildJobs for any thread."""

    def __init__(self, connection: WorkerConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._pending: dict[int, _PendingRequest] = {}
        self._closed = False

    def submit(self, manifest: ChildManifest) -> "concurrent.futures.Future[ChildRef]":
        """Have the worker create the job."""
        return self.request(SubmitRequest(manifest), protocol.read_ref)

    def wait(
        self, child: ChildRef, timeout: float | None
    ) -> "concurrent.futures.Future[ChildView]":
        """Have the worker wait until the job has finished; `timeout` in seconds."""
        return self.request(WaitRequest(child, timeout), protocol.read_view)

    def list(self) -> "concurrent.futures.Future[Sequence[ChildView]]":
        """Have the worker list all children."""
        return self.request(ListRequest(), protocol.read_views)

    def stop(self) -> None:
        """Cancel the requests that are not answered yet; the worker decides about further ones.

        Not those about steps: what is being stored is stored all the same.
        """
        with self._lock:
            waiting = list(self._pending.values())
        for future, _, request in waiting:
            if not isinstance(request, StepRequest):
                future.cancel()

    def close(self) -> None:
        """Send no more requests: they would be sent in the time of another job."""
        with self._lock:
            self._closed = True
            waiting, self._pending = self._pending, {}
        for future, _, _ in waiting.values():
            future.cancel()

    def handle_answer(self, message: JsonObject) -> None:
        """Resolve the request's future; an answer to a cancelled or earlier one is dropped."""
        with self._lock:
            future, read, _ = self._pending.pop(protocol.read_number(message), (None, None, None))
        if future is None or read is None or not future.set_running_or_notify_cancel():
            return
        if "error" in message:
            future.set_exception(protocol.error_from_json(child(message, "error")))
        else:
            future.set_result(read(message.get("value")))

    def request(
        self, request: WorkerRequest, read: Callable[[Json], T]
    ) -> "concurrent.futures.Future[T]":
        """Send a request; `read` makes the future's value of the answer's."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        with self._lock:
            if self._closed:
                future.set_exception(AttemptOverError("the attempt is over: it has ended"))
                return future
            number = next(self._numbers)
            self._pending[number] = (future, read, request)
            self._connection.send(protocol.ask_message(number, request))
        future.add_done_callback(partial(self._cancel_request, number))
        return future

    def _cancel_request(self, number: int, future: "concurrent.futures.Future[Any]") -> None:
        """Tell the worker to forget a request whose future was cancelled."""
        if not future.cancelled():
            return
        with self._lock:
            if self._pending.pop(number, None) is not None:
                self._connection.send(protocol.forget_message(number))


class RemoteSteps:
    """Keeps the results of one job's steps by requests to the worker; StepStore for any thread."""

    def __init__(self, requests: RemoteChildJobs) -> None:
        self._requests = requests

    def begin(self, key: str) -> "concurrent.futures.Future[None]":
        """Have the worker check that the step may be taken."""
        return self._requests.request(StepRequest(StepVerb.BEGIN, key), _nothing)

    def store(self, key: str, value: Json) -> "concurrent.futures.Future[None]":
        """Have the worker keep the result."""
        return self._requests.request(StepRequest(StepVerb.STORE, key, value), _nothing)

    def load(self, key: str) -> "concurrent.futures.Future[Json]":
        """Have the worker read a result from where it is kept."""
        return self._requests.request(StepRequest(StepVerb.LOAD, key), _as_it_is)

    def sleep(self, key: str, seconds: float) -> "concurrent.futures.Future[float]":
        """Have the worker wait, or say how much is left of the sleep."""
        return self._requests.request(StepRequest(StepVerb.SLEEP, key, seconds), _as_number)

    def signal(
        self, name: str, seconds: float | None, payload_schema: JsonObject | None
    ) -> "concurrent.futures.Future[JsonObject]":
        """Have the worker look for a signal, or say that the job is to park."""
        value = protocol.signal_value(seconds, payload_schema)
        return self._requests.request(StepRequest(StepVerb.SIGNAL, name, value), as_object)

    def children(
        self, key: str, children: Sequence[ChildRef], seconds: float | None
    ) -> "concurrent.futures.Future[JsonObject]":
        """Have the worker look at children, or say that the job is to park."""
        value = protocol.children_value(children, seconds)
        return self._requests.request(StepRequest(StepVerb.CHILDREN, key, value), as_object)

    def give_up(self, key: str) -> "concurrent.futures.Future[None]":
        """Tell the worker that the handler waits for this no longer."""
        return self._requests.request(StepRequest(StepVerb.GIVE_UP, key), _nothing)


class RemoteFiles:
    """Reads files of items by requests to the worker, which has the stores and the allow-list."""

    def __init__(self, requests: RemoteChildJobs) -> None:
        self._requests = requests

    async def stat(self, uri: str) -> ObjectStat:
        """Have the worker ask for size and version of a file; raises OffloadError."""
        request = FileRequest(uri)
        return await asyncio.wrap_future(self._requests.request(request, protocol.read_stat))

    async def read(self, uri: str, start: int, end: int) -> bytes:
        """Have the worker read the bytes from `start` to before `end`; raises OffloadError."""
        request = FileRequest(uri, (start, end))
        return await asyncio.wrap_future(self._requests.request(request, protocol.read_part))

    def results(self, uri: str) -> "RemoteFolder":
        """Return a folder for results; whether they may go there is said when one is written."""
        return RemoteFolder(self._requests, uri)


@dataclass(frozen=True, slots=True)
class RemoteFolder:
    """Writes results of items by requests to the worker."""

    requests: RemoteChildJobs
    uri: str

    async def write(self, folder: str, name: str, data: bytes) -> None:
        """Have the worker write an object; raises OffloadError."""
        request = ResultRequest(self.uri, folder, name, data)
        await asyncio.wrap_future(self.requests.request(request, _nothing))


def _as_number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _nothing(_: Json) -> None:
    """Make nothing of the answer."""


def _as_it_is(value: Json) -> Json:
    return value


@dataclass(slots=True)
class ActiveRun:
    """One job that the worker has sent."""

    request: RunRequest
    reports: ReportSender
    children: RemoteChildJobs
    stopping: threading.Event = field(default_factory=threading.Event)
    interrupt: Callable[[], object] | None = None
    """Interrupts the step that runs in the event loop, if one does."""

    def open_steps(self) -> RemoteSteps:
        """Return what keeps the results of the job's steps."""
        return RemoteSteps(self.children)

    def close(self) -> None:
        """Send no more reports and requests of this job."""
        self.reports.close()
        self.children.close()


class MessageReader:
    """Reads messages in a thread and passes jobs to the event loop in `runs`; None is the end."""

    def __init__(self, connection: WorkerConnection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._current: ActiveRun | None = None
        self.runs: asyncio.Queue[ActiveRun | None] = asyncio.Queue()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._read, name="messages", daemon=True).start()

    def _read(self) -> None:
        try:
            for message in self._connection.messages():
                self._handle(message)
        finally:
            exit_group()

    def _handle(self, message: JsonObject) -> None:
        match message_type(message):
            case MessageType.RUN:
                reports = ReportSender(self._connection)
                children = RemoteChildJobs(self._connection)
                self._current = ActiveRun(read_run(message), reports, children)
                self._loop.call_soon_threadsafe(self.runs.put_nowait, self._current)
            case MessageType.STOP if self._current:
                # Set here for handlers that poll it: they may be blocking the event loop.
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


def die_with(parent_pid: int) -> None:
    """Make this process die with the worker's, and ignore the signals that are meant for that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        exit_group()
    for signum in (signal.SIGINT, signal.SIGTERM):
        # Not SIG_IGN: a program that the handler starts would ignore them too.
        signal.signal(signum, _ignore)


def exit_group() -> NoReturn:
    """Exit at once, and kill everything that the handler has started."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(EXIT_ORPHANED)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing."""
