"""Streams of other processes and servers: read as far as they go, or refused as what they are."""

import asyncio
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from asyncjob.app.child_jobs import ChildRef, ChildView
from asyncjob.app.child_manifest import ChildManifest
from asyncjob.app.error_report import ErrorKind, ErrorReport
from asyncjob.client.connection import Answer
from asyncjob.client.rest.calls import read_model
from asyncjob.client.rest.errors import error_from_answer
from asyncjob.client.rest.events import EventStream
from asyncjob.errors import ApiError, AsyncJobError
from asyncjob.kube.transport import parse_object
from asyncjob.kube.watch import WatchEvent, read_events
from asyncjob.rest.jobs import Job, JobSummary
from asyncjob_worker.isolation import protocol
from asyncjob_worker.isolation.protocol import (
    FileRequest,
    FrameDecoder,
    FrameError,
    ListRequest,
    MemoryUsage,
    SubmitRequest,
    WaitRequest,
    encode,
)
from support.objects.fuzz import fuzzed, mutated, mutated_object

EVENT = {
    "type": "MODIFIED",
    "object": {"metadata": {"name": "a", "resourceVersion": "7"}, "spec": {"x": ["é"]}},
}
ERROR = {
    "type": "ERROR",
    "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"},
}
LINES = [
    json.dumps(line).encode() + b"\n" for line in (EVENT, {"type": "BOOKMARK", "object": {}}, ERROR)
]
STREAMS = [b"".join([LINES[0], LINES[1], LINES[0]]), b"".join(LINES), b"".join(LINES) * 3]


class Response:
    """An open answer whose body comes in pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = [*pieces, b""]
        self.content = self
        self.connection = None

    async def readany(self) -> bytes:
        return self._pieces.pop(0)

    def close(self) -> None:
        self._pieces = [b""]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    cuts = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [piece for begin, end in pairwise(cuts) if (piece := data[begin:end])]


async def events_of(pieces: list[bytes]) -> tuple[list[WatchEvent], str]:
    """Return the events of a watch and how it ended."""
    found: list[WatchEvent] = []
    try:
        async for event in read_events(Response(pieces)):  # type: ignore[arg-type]  # a stand-in
            found.append(event)  # noqa: PERF401 - what came before an error counts
    except ApiError as error:
        return found, type(error).__name__
    return found, ""


@fuzzed
@given(mutated(STREAMS), st.lists(st.integers(0, 5000), max_size=8))
def test_a_watch_tells_events_or_breaks_off_wherever_it_is_cut(
    data: bytes, places: list[int]
) -> None:
    whole = asyncio.run(events_of([data] if data else []))
    assert asyncio.run(events_of(cut(data, places))) == whole


@fuzzed
@given(mutated(LINES))
def test_any_answer_is_an_object(body: bytes) -> None:
    assert isinstance(parse_object(body), dict)


SSE = [
    b'event: job\nid: 7\ndata: {"a":\ndata: 1}\n\n',
    b": beat\n\n",
    b"data: [1]\r\n\r\nevent: x\ndata: no\n\n",
]


@fuzzed
@given(mutated([b"".join(SSE)]), st.lists(st.integers(0, 500), max_size=8))
def test_events_of_a_stream_do_not_depend_on_where_it_is_cut(
    data: bytes, places: list[int]
) -> None:
    whole, parts = EventStream(), EventStream()
    whole.feed(data)
    for piece in cut(data, places):
        parts.feed(piece)
    assert parts.ready == whole.ready


PROBLEM = {
    "type": "/problems/queue-full",
    "title": "t",
    "status": 429,
    "detail": "d",
    "jobId": "a",
    "errors": [{"field": "type", "detail": "missing"}],
}


@fuzzed
@given(
    mutated_object([PROBLEM]),
    st.integers(400, 599),
    st.booleans(),
    st.sampled_from(["", "3", "²", "9" * 5000]),
)
def test_any_refusal_of_a_gateway_is_an_error_of_the_client(
    body: Any, status: int, submits: bool, wait: str
) -> None:
    answer = Answer(orjson.loads(json.dumps(body)), status, {"retry-after": wait})
    assert isinstance(error_from_answer(answer, submits=submits), AsyncJobError)


SUMMARY = {
    "id": "a",
    "uid": "u",
    "namespace": "ns",
    "type": "t",
    "queue": "q",
    "phase": "Queued",
    "createdAt": "2026-11-23T12:00:00Z",
}


@pytest.mark.parametrize("model", [Job, JobSummary])
@fuzzed
@given(body=mutated_object([SUMMARY]))
def test_any_answer_of_a_gateway_is_read_or_an_error_of_the_client(
    model: type[BaseModel], body: Any
) -> None:
    try:
        read_model(model, body)
    except AsyncJobError:
        return


REPORT = ErrorReport(ErrorKind.RETRY, "ValueError", "Validation", "words", 3.0)
VIEW = ChildView("a", "u", "t", "Succeeded", "", "", 1)  # type: ignore[arg-type]  # as JSON has it
FIELDS: dict[str, Any] = dict.fromkeys(ChildManifest.__dataclass_fields__, None)
MANIFEST = ChildManifest(**FIELDS)
REF = ChildRef(**dict.fromkeys(ChildRef.__dataclass_fields__, "a"))
USAGE = MemoryUsage(5, 3, spent=True)
Reader = Callable[[Any], object]
MESSAGES: list[tuple[Reader, Any]] = [
    (protocol.read_memory_usage, protocol.ready_message(USAGE)),
    (protocol.read_error, protocol.failed_message(REPORT, USAGE)),
    (protocol.read_result, protocol.done_message({"a": 1}, USAGE)),
    (protocol.read_progress, {"is": "report", "progress": [50, "half"]}),
    (protocol.read_request, protocol.ask_message(1, SubmitRequest(MANIFEST))),
    (protocol.read_request, protocol.ask_message(2, WaitRequest(REF, 3.0))),
    (protocol.read_request, protocol.ask_message(3, ListRequest())),
    (protocol.read_request, protocol.ask_message(4, FileRequest("file:///a", (0, 9)))),
    (protocol.read_number, protocol.ask_message(3, ListRequest())),
    (protocol.message_type, protocol.unable_message("why")),
    (
        lambda message: (
            protocol.error_from_json(message["error"])
            if isinstance(message.get("error"), dict)
            else None
        ),
        protocol.error_message(4, ApiError("words", status=409, reason="Conflict")),
    ),
]
FRAMES = [encode(message) for _, message in MESSAGES]


@pytest.mark.parametrize(("read", "message"), MESSAGES)
@fuzzed
@given(data=st.data())
def test_a_message_of_a_handler_process_is_read_or_no_frame(
    read: Reader, message: Any, data: st.DataObject
) -> None:
    read(orjson.loads(orjson.dumps(message)))
    other = data.draw(mutated_object([orjson.loads(orjson.dumps(message))]))
    sent = json.loads(json.dumps(other))
    try:
        read(sent if isinstance(sent, dict) else {})
    except FrameError:
        return


@fuzzed
@given(
    mutated(
        [b"".join(FRAMES)],
        [*FRAMES, b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x00\x00\x00\x02{}"],
    ),
    st.lists(st.integers(0, 5000), max_size=8),
)
def test_frames_of_a_handler_process_are_messages_or_no_frames_wherever_they_are_cut(
    data: bytes, places: list[int]
) -> None:
    assert decoded(cut(data, places)) == decoded([data] if data else [])


def decoded(pieces: list[bytes]) -> tuple[list[Any], bool]:
    decoder, found = FrameDecoder(limit=10_000), []
    try:
        for piece in pieces:
            for message in decoder.feed(piece):
                found.append(message)  # noqa: PERF402 - what came before an error counts
    except FrameError:
        return found, False
    return found, True
