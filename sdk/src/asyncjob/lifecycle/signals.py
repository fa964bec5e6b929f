"""Signals: what somebody tells a job while it exists, such as that a release is approved.

A signal has a name and a payload, says who has sent it, and is never changed. It stands in the
spec, because those who send one may write no status. A handler that waits for one is parked.
"""

import re
from typing import Final

from asyncjob.free_json import MAX_DEPTH, is_too_deep, size_of
from asyncjob.json_types import Json, JsonObject, as_object, child, flag, text
from asyncjob.lifecycle.waits import WaitKind, waits_of

MAX_SIGNALS: Final = 16
"""Signals that a job takes."""

MAX_SIGNAL_BYTES: Final = 16 * 1024
"""Largest payload of a signal, as JSON."""

_LEVELS_ABOVE_PAYLOADS: Final = 4
"""The job, its spec, its signals, and one of them."""

MAX_SIGNAL_NAME_LENGTH: Final = 63

SIGNAL_NAME_PATTERN: Final = f"^[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_SIGNAL_NAME_LENGTH - 1}}}$"
_SIGNAL_NAME: Final = re.compile(rf"{SIGNAL_NAME_PATTERN[:-1]}\Z")


def is_signal_name(name: str) -> bool:
    """Return whether a signal may be called so."""
    return _SIGNAL_NAME.match(name) is not None


def signals_of(spec: JsonObject) -> JsonObject:
    """Return the signals that a job has been sent, by name."""
    return child(spec, "signals")


def signal_entry(payload: Json, sent_by: str, sent_at: str) -> JsonObject:
    """Return the entry of a signal, as the spec has it."""
    return {"payload": payload, "sentBy": sent_by, "sentAt": sent_at}


def readable_signals(spec_signals: JsonObject, levels: int | None = None) -> JsonObject:
    """Return the signals as they are taken in, with `payloadRefused` for what is too much.

    Our own senders refuse such payloads before they send them. The API server takes them from
    anybody else, and lets nobody remove them. `levels` says how many levels of the job were read,
    if not all: a payload that goes as deep may have been cut.
    """
    deepest = MAX_DEPTH if levels is None else min(MAX_DEPTH, levels - _LEVELS_ABOVE_PAYLOADS - 1)
    return {name: _readable(as_object(one), deepest) for name, one in spec_signals.items()}


def _readable(signal: JsonObject, deepest: int) -> JsonObject:
    why = _why_refused(signal.get("payload"), deepest)
    if not why:
        return signal
    return {
        **{name: value for name, value in signal.items() if name != "payload"},
        "payloadRefused": why,
    }


def _why_refused(payload: Json, deepest: int) -> str:
    if is_too_deep(payload, deepest):
        return f"its payload is nested deeper than {deepest} levels"
    if (size := size_of(payload)) > MAX_SIGNAL_BYTES:
        return f"its payload has {size} bytes, {MAX_SIGNAL_BYTES} are allowed"
    return ""


def has_timed_out(status: JsonObject, name: str) -> bool:
    """Return whether the handler has waited for this signal in vain."""
    record = as_object(waits_of(status).get(name))
    return text(record, "kind") == WaitKind.SIGNAL and flag(record, "over")
