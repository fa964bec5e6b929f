"""Bytes, texts and objects that nobody would write: good ones changed, and nasty ones made up.

ASYNCJOB_FUZZ_EXAMPLES is how many are tried of each property; `make fuzz` sets it.
"""

import contextlib
import copy
import gc
import os
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES: Final = int(os.environ.get("ASYNCJOB_FUZZ_EXAMPLES", "25"))
fuzzed: Final = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck)
)

TOKENS: Final[Sequence[bytes]] = (
    b"\x00",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xc2\xb2",
    b"\xd9\xa3",
    b"\xe2\x80\xa8",
    b"\\ud800",
    b"\\u0000",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b":",
    b",",
    b"\n",
    b"\r\n",
    b"-",
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!int ",
    b"!!bool ",
    b"? ",
    b"null",
    b"true",
    b"NaN",
    b"-0",
    b"1e999",
    b"1_0",
    b"0x1",
    b"1:30",
    b"9" * 5000,
    b"[" * 1100,
    b'{"a":' * 1100,
    b"]" * 1100,
    b"0000-01-01T00:00:00Z",
    b"9999-12-31T23:59:59-23:59",
    b" " * 300,
)

NASTY_TEXTS: Final[Sequence[str]] = (
    "",
    " ",
    "\x00",
    "²",
    "٣",
    "9" * 5000,
    "-1",
    "1e999",
    "NaN",
    "\ud800",
    "\u2028",
    "é" * 300,
    "{",
    "[" * 1100,
    "null",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "2026-02-30T00:00:00Z",
    "2026-01-01T00:00:00",
    "2026-W01-1",
    "H",
    "@daily",
    "../..",
    "%s",
    "=",
    ":=",
    "*",
    "\r\n",
)


def nested(levels: int) -> Any:
    """Return a list in a list, so many levels deep."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


NASTY_VALUES: Final[Sequence[Any]] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    2**64 - 1,
    -(2**63),
    1e308,
    -0.0,
    0.5,
    [],
    {},
    [[]],
    {"": {}},
    [None],
    [0, "", {}],
    {"a": None},
    nested(300),
    *NASTY_TEXTS,
)


@st.composite
def mutated(draw: st.DrawFn, examples: Sequence[bytes], tokens: Sequence[bytes] = TOKENS) -> bytes:
    """Return one of the examples with up to six changes of its bytes, or any bytes at all."""
    if draw(st.integers(0, 19)) == 0:
        return draw(st.binary(max_size=200))
    data = bytearray(draw(st.sampled_from(examples)))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(data)))
        size = draw(st.integers(0, 24))
        match draw(st.integers(0, 5)):
            case 0:
                del data[at : at + size]
            case 1:
                data[at:at] = draw(st.sampled_from(tokens))
            case 2:
                data[at : at + 1] = bytes([draw(st.integers(0, 255))])
            case 3:
                data[at:at] = data[at : at + size] * draw(st.sampled_from([1, 2, 300]))
            case 4:
                other = draw(st.sampled_from(examples))
                begin = draw(st.integers(0, len(other)))
                data[at : at + size] = other[begin : begin + size]
            case _:
                data[at : at + size] = draw(st.sampled_from(tokens))
    return bytes(data)


def mutated_text(examples: Sequence[str]) -> st.SearchStrategy[str]:
    """Return texts near the examples, and nasty ones, with characters that UTF-8 has not."""
    encoded = [text.encode() for text in examples]
    near = mutated(encoded).map(lambda data: data.decode("utf-8", "surrogateescape"))
    return near | st.sampled_from(NASTY_TEXTS) | st.text(max_size=30)


@st.composite
def mutated_object(draw: st.DrawFn, examples: Sequence[Any], *, encodable: bool = True) -> Any:
    """Return one of the objects in which some values are replaced, removed, added or moved.

    `encodable`: as JSON gives it, without half characters.
    """
    value = copy.deepcopy(draw(st.sampled_from(examples)))
    nasty = [one for one in NASTY_VALUES if not (encodable and one == "\ud800")]
    for _ in range(draw(st.integers(1, 5))):
        holder, key = _place(draw, value)
        if holder is None:
            return copy.deepcopy(draw(st.sampled_from(nasty)))
        match draw(st.integers(0, 3)):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[draw(st.sampled_from(["", "kind", "metadata", "status", "\u2028"]))] = (
                    copy.deepcopy(draw(st.sampled_from(nasty)))
                )
            case 2 if isinstance(holder[key], list):
                holder[key] = holder[key] * 3 + [copy.deepcopy(draw(st.sampled_from(nasty)))]
            case _:
                holder[key] = copy.deepcopy(draw(st.sampled_from(nasty)))
    return value


def _place(draw: st.DrawFn, value: Any) -> tuple[Any, Any]:
    """Return a container in the value and the key of one of its values; None if there is none."""
    holder, key = None, None
    while isinstance(value, dict | list) and value:
        keys = sorted(value) if isinstance(value, dict) else range(len(value))
        holder, key = value, draw(st.sampled_from(keys))
        value = holder[key]
        if draw(st.integers(0, 3)) == 0:
            break
    return holder, key


def cpu_seconds(*calls: Callable[[], object], tries: int = 5) -> list[float]:
    """Return the processor time of each call, the least of some tries; what it raises counts too.

    On a busy machine another process empties the caches in the middle of most of them. The calls
    take turns, so that what slows the machine for a while slows each of them.
    """
    least = [float("inf")] * len(calls)
    gc.disable()  # what else the process has is not to be gone through meanwhile
    try:
        for _ in range(tries):
            for number, call in enumerate(calls):
                began = time.thread_time()
                _attempt(call)
                least[number] = min(least[number], time.thread_time() - began)
    finally:
        gc.enable()
    return least


def peak_bytes(call: Callable[[], object]) -> int:
    """Return how many bytes of Python's a call holds at its most."""
    tracemalloc.start()
    try:
        _attempt(call)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _attempt(call: Callable[[], object]) -> None:
    with contextlib.suppress(Exception):  # which it is, other tests say
        call()
