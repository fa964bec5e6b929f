"""Signals that cannot be given to a handler: what is said of them, and what stays."""

from typing import Any

import pytest

from asyncjob.free_json import MAX_DEPTH, FreeJsonError, is_too_deep, normalize
from asyncjob.lifecycle.signals import MAX_SIGNAL_BYTES, readable_signals

ABOUT = {"sentBy": "ada", "sentAt": "2026-01-01T00:00:00.000Z"}


def nested(levels: int, bottom: Any = 1) -> Any:
    value = bottom
    for _ in range(levels):
        value = [value]
    return value


def read(payload: Any, levels: int | None = None) -> Any:
    return readable_signals({"go": {**ABOUT, "payload": payload}}, levels)["go"]


@pytest.mark.parametrize("payload", [None, 0, {"a": [1]}, nested(MAX_DEPTH), "x" * 16382, []])
def test_what_our_own_clients_send_is_read_as_it_is(payload: Any) -> None:
    assert read(payload) == {**ABOUT, "payload": payload}
    assert normalize(payload, what="it", max_bytes=MAX_SIGNAL_BYTES) == payload
    assert readable_signals({"go": ABOUT}) == {"go": ABOUT}
    assert readable_signals({}) == {}


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (nested(MAX_DEPTH + 1), "its payload is nested deeper than 64 levels"),
        (nested(5000), "its payload is nested deeper than 64 levels"),
        ("x" * 16383, "its payload has 16385 bytes, 16384 are allowed"),
        (["x"] * 5000, "its payload has 20001 bytes, 16384 are allowed"),
    ],
)
def test_what_is_too_much_is_told_in_the_place_of_the_payload(payload: Any, why: str) -> None:
    sent = {"go": {**ABOUT, "payload": payload}, "beside": {**ABOUT, "payload": 1}}
    read = readable_signals(sent)
    assert read == {"go": {**ABOUT, "payloadRefused": why}, "beside": sent["beside"]}
    assert sent["go"]["payload"] is payload


@pytest.mark.parametrize("levels", [30, 31, 62, 125])
def test_what_may_have_been_cut_is_not_taken_for_whole(levels: int) -> None:
    kept = nested(levels - 4, None)
    assert read(kept, levels) == {**ABOUT, "payloadRefused": read(kept, levels)["payloadRefused"]}
    whole = nested(min(levels - 5, MAX_DEPTH))
    assert read(whole, levels)["payload"] is whole


@pytest.mark.parametrize("bottom", [None, [], {}, {"a": 1}])
@pytest.mark.parametrize("levels", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 190])
def test_too_deep_is_what_normalize_refuses(levels: int, bottom: Any) -> None:
    value = nested(levels, bottom)
    try:
        normalize(value, what="it")
    except FreeJsonError:
        assert is_too_deep(value)
    else:
        assert not is_too_deep(value)
