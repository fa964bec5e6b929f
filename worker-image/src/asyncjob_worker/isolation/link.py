"""A child's end of the socket: written by any of its threads, read by one.

What a handler reports is handed on one message at a time. What comes while one is under way waits,
the newest wins: a handler that reports all the time costs the worker twenty messages a second.
"""

import socket
import threading
from collections.abc import Iterator

from asyncjob.json_types import Json, JsonObject
from asyncjob.lifecycle.move import clip
from asyncjob_worker.isolation.frames import Decoder, encode
from asyncjob_worker.isolation.messages import Word

_PIECE = 64 * 1024


class Link:
    """The socket to the worker."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._incoming = self._receive()

    def send(self, message: JsonObject) -> None:
        """Send a message; raises FrameTooLargeError, and OSError once the worker is gone."""
        frame = encode(message)
        with self._sending:
            self._connection.sendall(frame)

    def messages(self) -> Iterator[JsonObject]:
        """Return what the worker sends, from where the last reader left off."""
        return self._incoming

    def _receive(self) -> Iterator[JsonObject]:
        decoder = Decoder()
        while piece := self._connection.recv(_PIECE):
            yield from decoder.feed(piece)


class Reports:
    """What one job's handler reports; a ReportSink for any thread."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._news: dict[str, Json] = {}
        self._under_way = False
        self._closed = False

    def progress(self, percent: int, message: str | None) -> None:
        """Hand on how far the handler is."""
        self._note("progress", [percent, message and clip(message)])

    def checkpoint(self, value: Json) -> None:
        """Hand on where to resume."""
        self._note("checkpoint", value)

    def taken(self) -> None:
        """Hand on what has come since the last report, which the worker has taken."""
        with self._lock:
            self._under_way = False
            self._flush()

    def close(self) -> None:
        """Hand on what is left; what comes later is another job's time, and dropped."""
        with self._lock:
            self._under_way = False
            self._flush()
            self._closed = True

    def _note(self, what: str, value: Json) -> None:
        with self._lock:
            if self._closed:
                return
            self._news[what] = value
            if not self._under_way:
                self._flush()

    def _flush(self) -> None:
        if not self._news:
            return
        news, self._news = self._news, {}
        self._link.send({"is": Word.REPORT, **news})
        self._under_way = True
