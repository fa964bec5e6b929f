"""A child's end of the socket: written by any of its threads, read by one.

What a handler reports is handed on one message at a time. What comes while one is under way waits,
the newest wins: a handler that reports all the time costs the worker twenty messages a second.
"""

import socket
import threading
from collections.abc import Iterator

from asyncjob.json_types import Json, JsonObject
from asyncjob.lifecycle.move import truncate
from asyncjob_worker.isolation.frames import FrameDecoder, encode
from asyncjob_worker.isolation.messages import MessageType

_READ_BYTES = 64 * 1024


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
        """Return what the worker sends, from where the last reader left off."""
        return self._incoming

    def _receive(self) -> Iterator[JsonObject]:
        decoder = FrameDecoder()
        while piece := self._connection.recv(_READ_BYTES):
            yield from decoder.feed(piece)


class ReportSender:
    """What one job's handler reports; a ReportSink for any thread."""

    def __init__(self, connection: WorkerConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._pending: dict[str, Json] = {}
        self._awaiting_ack = False
        self._closed = False

    def progress(self, percent: int, message: str | None) -> None:
        """Hand on how far the handler is."""
        self._put("progress", [percent, message and truncate(message)])

    def checkpoint(self, value: Json) -> None:
        """Hand on where to resume."""
        self._put("checkpoint", value)

    def acknowledged(self) -> None:
        """Hand on what has come since the last report, which the worker has taken."""
        with self._lock:
            self._awaiting_ack = False
            self._flush()

    def close(self) -> None:
        """Hand on what is left; what comes later is another job's time, and dropped."""
        with self._lock:
            self._awaiting_ack = False
            self._flush()
            self._closed = True

    def _put(self, what: str, value: Json) -> None:
        with self._lock:
            if self._closed:
                return
            self._pending[what] = value
            if not self._awaiting_ack:
                self._flush()

    def _flush(self) -> None:
        if not self._pending:
            return
        news, self._pending = self._pending, {}
        self._connection.send({"is": MessageType.REPORT, **news})
        self._awaiting_ack = True
