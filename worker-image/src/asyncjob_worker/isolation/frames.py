"""Frames on the socket between the worker and a child: a length, then so many bytes of JSON.

Must not know what the messages mean, nor who reads from what.
"""

import struct
from collections.abc import Iterator
from typing import Final

import orjson

from asyncjob.json_types import JsonObject
from asyncjob_worker.errors import WorkerError

MAX_BYTES: Final = 64 * 1024 * 1024
"""Largest frame; a payload or result with what belongs to it has to fit."""

_FRAME_LENGTH: Final = struct.Struct(">I")


class FrameError(WorkerError):
    """What came over the socket is no frame."""


class FrameTooLargeError(FrameError):
    """The frame is larger than the socket takes."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"it has {size} bytes as JSON, a handler's process takes {limit}")
        self.size = size


def encode(message: JsonObject, *, limit: int = MAX_BYTES) -> bytes:
    """Return the message as a frame; raises FrameTooLargeError."""
    body = orjson.dumps(message)
    if len(body) > limit:
        raise FrameTooLargeError(len(body), limit)
    return _FRAME_LENGTH.pack(len(body)) + body


class FrameDecoder:
    """Puts frames together from whatever pieces they arrive in."""

    def __init__(self, *, limit: int = MAX_BYTES) -> None:
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[JsonObject]:
        """Take a piece and return the messages that are complete now; raises FrameError."""
        self._data += data
        while (body := self._next()) is not None:
            yield _parse_frame(body)

    def _next(self) -> bytes | None:
        if len(self._data) < _FRAME_LENGTH.size:
            return None
        (size,) = _FRAME_LENGTH.unpack_from(self._data)
        if size > self._limit:
            raise FrameTooLargeError(size, self._limit)
        end = _FRAME_LENGTH.size + size
        if len(self._data) < end:
            return None
        body = bytes(memoryview(self._data)[_FRAME_LENGTH.size : end])
        del self._data[:end]
        return body


def _parse_frame(body: bytes) -> JsonObject:
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise FrameError(f"a frame of {len(body)} bytes is not JSON") from error
    if not isinstance(message, dict):
        raise FrameError(f"a frame of {len(body)} bytes is no object")
    return message
