"""No text of others holds an event loop, or takes more memory than a small multiple of itself.

Processor time, not seconds: a busy machine changes nothing. Four times the text may take four times
as long, with a factor of two for the noise of a measurement: what is quadratic takes sixteen times.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from asyncjob.audit.history_file import parse_line
from asyncjob.cli.durations import parse_duration
from asyncjob.cli.input.documents import parse_payload
from asyncjob.client.rest.events import EventStream
from asyncjob.free_json import parse
from asyncjob.kube.transport import parse_object
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.timestamps import try_parse_timestamp
from asyncjob.names import WORKER_ANNOTATION
from asyncjob.rest.listing import decode_cursor
from asyncjob.tracing.context import normalize_traceparent
from asyncjob.worker_lease import read_worker_lease
from asyncjob_operator.core.schedules.calendar import parse_schedule
from asyncjob_worker.isolation.protocol import FrameDecoder
from properties.parsers.test_messages import events_of
from support.objects.fuzz import cpu_seconds, peak_bytes

SIZE = 32 * 1024
"""Bytes of the smaller text; the larger has four times as many."""

LOOP_SECONDS = 0.1
GROWTH = 8.0
GROWTH_TRIES = 10
NOISE_SECONDS = 0.005
"""Below this a measurement says nothing about growth."""

FACTOR = 64
BASE_BYTES = 256 * 1024


@dataclass(frozen=True)
class Parser:
    """What reads a text, and whether it does so in an event loop that others share."""

    name: str
    read: Callable[[bytes], object]
    in_loop: bool = True
    limit: int = 4 * SIZE
    """Bytes that the schema lets through."""


def watch_in_pieces(data: bytes) -> None:
    pieces = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    asyncio.run(events_of(pieces))


def stream_in_pieces(data: bytes) -> None:
    stream = EventStream()
    for at in range(0, len(data), 1024):
        stream.feed(data[at : at + 1024])


def frames(data: bytes) -> None:
    decoder = FrameDecoder()
    for at in range(0, len(data), 1024):
        list(decoder.feed(data[at : at + 1024]))


def lease(data: bytes) -> None:
    said = data.decode(errors="replace")
    read_worker_lease({"metadata": {"annotations": {WORKER_ANNOTATION: said}}})


def text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: read(data.decode(errors="replace"))


def quiet(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
    def call(data: bytes) -> None:
        with contextlib.suppress(ValueError):
            read(data)

    return call


PARSERS = [
    Parser("answer", parse_object),
    Parser("watch", watch_in_pieces),
    Parser("server-sent events", stream_in_pieces),
    Parser("frames", frames),
    Parser("lease", lease),
    Parser("body", lambda data: parse(data, what="body", max_values=250_000, unique_keys=True)),
    Parser("schedule", text(lambda said: parse_schedule(said, "UTC", "s")), limit=256),
    Parser("traceparent", text(normalize_traceparent)),
    Parser("cursor", text(decode_cursor)),
    Parser("timestamp", text(try_parse_timestamp)),
    Parser("items", text(ItemRanges.parse)),
    Parser("history", parse_line, in_loop=False),
    Parser("pairs", text(lambda said: parse_payload([said])), in_loop=False),
    Parser("duration", text(parse_duration), in_loop=False),
]

PATTERNS: dict[str, Callable[[int], bytes]] = {
    "one long text": lambda size: b'"' + b"a" * (size - 2) + b'"',
    "brackets": lambda size: b"[" * size,
    "closed brackets": lambda size: b"[" * (size // 2) + b"]" * (size // 2),
    "objects": lambda size: b'{"a":' * (size // 5),
    "quotes": lambda size: b'"' * size,
    "backslashes": lambda size: b'"' + b"\\" * (size - 2) + b'"',
    "digits": lambda size: b"9" * size,
    "empty lists": lambda size: b"[" + b"[]," * (size // 3) + b"[]]",
    "equal keys": lambda size: b"{" + b'"a":1,' * (size // 6) + b'"a":1}',
    "other keys": lambda size: json.dumps({str(n): n for n in range(size // 16)}).encode(),
    "lines": lambda size: b"\n" * size,
    "blanks": lambda size: b" " * size,
    "commas": lambda size: b"*," * (size // 2),
    "cron lists": lambda size: b"H/2," * (size // 4) + b"1 * * * *",
    "cron blanks": lambda size: b"* " * (size // 2),
    "data": lambda size: b"data: 1\n" * (size // 8),
    "hyphens": lambda size: b"00-" * (size // 3),
    "zeros": bytes,
    "equal signs": lambda size: b"a" + b"=:" * (size // 2),
    "items": lambda size: b",".join(b"%d" % (2 * n) for n in range(size // 7, 0, -1)),
    "units": lambda size: b"1d" * (size // 2),
    "deep and broad": lambda size: b"[" * 1100 + b"1,[[" * (size // 4) + b"]" * size,
}


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_time_grows_as_the_text_does_and_holds_no_loop(parser: Parser) -> None:
    for name, pattern in PATTERNS.items():
        read_small, read_large = (
            partial(parser.read, pattern(size)[: parser.limit]) for size in (SIZE, 4 * SIZE)
        )
        [took] = cpu_seconds(read_large)
        if took > NOISE_SECONDS and parser.limit == 4 * SIZE:
            before, after = cpu_seconds(read_small, read_large, tries=GROWTH_TRIES)
            assert after / before < GROWTH, (
                f"{parser.name}: {name}: {before:.4f} s, then {after:.4f} s"
            )
        if parser.in_loop:
            assert took < LOOP_SECONDS, f"{parser.name}: {name}: {took:.3f} s"


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_memory_is_a_small_multiple_of_the_text(parser: Parser) -> None:
    for name, pattern in PATTERNS.items():
        data = pattern(SIZE)[: parser.limit]
        peak = peak_bytes(lambda data=data: parser.read(data))  # type: ignore[misc]  # a default
        assert peak <= FACTOR * len(data) + BASE_BYTES, f"{parser.name}: {name}: {peak} bytes"
