"""What a job keeps of the waits of its handler: the end of each, and what a parked job waits for.

A job is parked while it waits for something without a slot: no worker holds it, and the operator
queues it again once the wait is over. The end of a wait is a time of the API server's clock.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from asyncjob.free_json import is_too_deep, size_of
from asyncjob.json_types import Json, JsonObject, as_object, child, items, text
from asyncjob.lifecycle.phases import Reason
from asyncjob.names import ARRAY_KIND, JOB_KIND

MAX_WAITING: Final = 20
"""Waits that a parked job names: all signals, what ends first by time, and of more children and
sleeps those that fit. A job that waits for more signals keeps its slot."""

MAX_SLEEP_SECONDS: Final = 365 * 24 * 3600
"""Longest sleep of a handler: a year."""

MAX_CHILDREN_NAMED: Final = 100
"""Unfinished children that a parked job names for one wait; for more it is parked again."""

MAX_CHILDREN_NAMED_IN_ALL: Final = 200
"""Unfinished children that a parked job names for all its waits, each of which gets its share."""

MAX_PAYLOAD_SCHEMA_BYTES: Final = 4096
"""Largest JSON schema of a signal's payload that a parked job shows, as JSON; a larger one is left
out. With 16 signals that is 64 KiB."""

_MAX_SCHEMA_LEVELS: Final = 16

PARK_AFTER_SECONDS: Final = 2.0
"""A wait that is over within this time keeps the slot: another claim would cost more."""


NEVER: Final = "9999"
"""Sorts behind each time: the end of a wait that no time ends."""


class WaitKind(StrEnum):
    """What a handler waits for."""

    SLEEP = "Sleep"
    SIGNAL = "Signal"
    CHILDREN = "Children"


_TELLS_APART: Final = re.compile(r" \([0-9a-f]{8}(, timed(, [0-9]+)?)?\)$")


def shown_key(key: str) -> str:
    """Return the key of a wait as people read it: one for children says which by a digest."""
    return _TELLS_APART.sub("", key)


def shown_name(kind: str, key: str) -> str:
    """Return what people call a wait: `Signal approval`, `children a and 9 more`."""
    return shown_key(key) if kind == WaitKind.CHILDREN else f"{kind} {key}"


@dataclass(frozen=True, slots=True)
class WaitedChild:
    """A child that a parked job waits for; `kind` may be one that this version does not know."""

    name: str
    uid: str
    kind: str = JOB_KIND

    def to_json(self) -> JsonObject:
        """Return the form of an entry of `children`: its kind is left out for a job."""
        entry: dict[str, Json] = {"name": self.name, "uid": self.uid}
        return entry if self.kind == JOB_KIND else {**entry, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class WaitView:
    """One thing that a parked job waits for; `kind` may be one that this version does not know."""

    kind: str
    key: str
    until: str = ""
    """When it is over by time, RFC 3339; empty if only something else ends it."""

    sent: bool = False
    """Whether the signal that it is for has been sent."""

    children: tuple[WaitedChild, ...] = ()
    """The children that it is for: it is over once all of them are."""

    payload_schema: JsonObject = field(default_factory=dict, hash=False)
    """JSON schema of the payload that the handler takes, for those who send the signal; empty if
    it is not known. It is written, and read by nobody who decides anything."""

    def to_json(self) -> JsonObject:
        """Return the form of an entry of `status.waiting`."""
        entry: dict[str, Json] = {"kind": self.kind, "key": self.key}
        if self.until:
            entry["until"] = self.until
        if self.children:
            entry["children"] = [one.to_json() for one in self.children]
        if self.payload_schema:
            entry["payloadSchema"] = self.payload_schema
        return entry


def kinds_of(waiting: Iterable[WaitView]) -> frozenset[str]:
    """Return the kinds of several waits."""
    return frozenset(one.kind for one in waiting)


def waits_of(status: JsonObject) -> JsonObject:
    """Return the records of the handler's waits, by key."""
    return child(status, "waits")


def wait_record(kind: WaitKind, until: str) -> JsonObject:
    """Return the record of a wait that ends at `until`, RFC 3339."""
    return {"kind": kind.value, "until": until}


def open_wait(kind: WaitKind) -> JsonObject:
    """Return what is known of a wait that no time ends; such a one has no record."""
    return {"kind": kind.value}


def children_wait(record: JsonObject, children: Iterable[WaitedChild]) -> JsonObject:
    """Return what is known of a wait for these children; of more than a hundred the first."""
    named: list[Json] = [one.to_json() for one in children]
    return {**record, "children": named[:MAX_CHILDREN_NAMED]}


def signal_wait(record: JsonObject, payload_schema: JsonObject | None) -> JsonObject:
    """Return what is known of a wait for a signal, with the schema of its payload if it fits."""
    if not payload_schema or is_too_deep(payload_schema, _MAX_SCHEMA_LEVELS):
        return record
    if size_of(payload_schema) > MAX_PAYLOAD_SCHEMA_BYTES:
        return record
    return {**record, "payloadSchema": payload_schema}


def mark_over(waits: JsonObject, keys: Collection[str]) -> JsonObject:
    """Return the records with those of the given keys marked as over."""
    marked: dict[str, Json] = {
        key: {**as_object(record), "over": True} if key in keys else record
        for key, record in waits.items()
    }
    return marked


def keep_sleeps(waits: JsonObject) -> JsonObject | None:
    """Return the records of sleeps without the others, as a merge-patch; None if there are none.

    A redrive does this: what has timed out may come after all.
    """
    dropped: dict[str, Json] = {
        key: None if text(as_object(record), "kind") != WaitKind.SLEEP else record
        for key, record in waits.items()
    }
    return dropped if any(dropped.values()) else None


def without_dropped(waits: JsonObject) -> JsonObject:
    """Return the records that are left of such a merge-patch."""
    return {key: record for key, record in waits.items() if record is not None}


def read_waiting(status: JsonObject, signals: Collection[str]) -> tuple[WaitView, ...]:
    """Return what a parked job that has been sent these signals waits for."""
    return tuple(_read_wait(as_object(entry), signals) for entry in items(status, "waiting"))


def _read_wait(entry: JsonObject, signals: Collection[str]) -> WaitView:
    kind, key = text(entry, "kind"), text(entry, "key")
    sent = kind == WaitKind.SIGNAL and key in signals
    return WaitView(kind, key, text(entry, "until"), sent, _read_children(entry))


def _read_children(entry: JsonObject) -> tuple[WaitedChild, ...]:
    if "children" not in entry:
        return ()
    named = map(as_object, items(entry, "children"))
    return tuple(
        WaitedChild(text(one, "name"), text(one, "uid"), text(one, "kind", JOB_KIND))
        for one in named
    )


WAKES: Final[frozenset[str]] = frozenset({*WaitKind, ARRAY_KIND})
"""What a job is woken from: kinds of waits, and AsyncArray for children with arrays among them."""


def wake_of(record: JsonObject) -> str:
    """Return which of these is needed to end an open wait."""
    if any(one.kind == ARRAY_KIND for one in _read_children(record)):
        return ARRAY_KIND
    return text(record, "kind")


def can_be_named(waits: Mapping[str, JsonObject]) -> bool:
    """Return whether a park for these open waits can name all that has to wake it.

    That is each signal, what time ends first, and one wait for children if there are any: that one
    wakes the job, which then looks at all. What else is not named wakes nobody.
    """
    return len(_named_always(_views(waits))) <= MAX_WAITING


def first_waits(waits: Mapping[str, JsonObject]) -> Sequence[WaitView]:
    """Return what a job with these open waits names as it parks, signals first and sleeps last.

    Of more waits for children than fit, those for the fewest: they are over first.
    """
    views = _views(waits)
    always = _named_always(views)
    named = (always + [one for one in views if one not in always])[:MAX_WAITING]
    return _with_shares([one for one in views if one in named])


def _views(waits: Mapping[str, JsonObject]) -> list[WaitView]:
    """Return open waits by kind, and of one kind what is over first before the others."""
    views = [
        WaitView(
            text(record, "kind"),
            key,
            text(record, "until"),
            children=_read_children(record),
            payload_schema=child(record, "payloadSchema"),
        )
        for key, record in waits.items()
    ]
    return sorted(
        views,
        key=lambda view: (
            _NAMED_FIRST.index(view.kind),
            # What ends first by time is named anyway; of the rest, what nothing else may wake.
            view.kind == WaitKind.CHILDREN and bool(view.until),
            view.until or NEVER,
            len(view.children),
            view.key,
        ),
    )


def _named_always(views: Sequence[WaitView]) -> list[WaitView]:
    """Return what a park has to name, of waits in their order."""
    timed = [one for one in views if one.until]
    first = min(timed, key=lambda one: one.until, default=None)
    children = next((one for one in views if one.kind == WaitKind.CHILDREN), None)
    if first is not None and first.kind == WaitKind.CHILDREN:
        children = first
    return [one for one in views if one.kind == WaitKind.SIGNAL or one in (first, children)]


def _with_shares(waiting: Sequence[WaitView]) -> Sequence[WaitView]:
    """Return the waits with as many children each as the job may name in all."""
    groups = sum(bool(one.children) for one in waiting)
    if not groups:
        return waiting
    share = MAX_CHILDREN_NAMED_IN_ALL // groups
    return [replace(one, children=one.children[:share]) for one in waiting]


_NAMED_FIRST: Final[Sequence[str]] = (WaitKind.SIGNAL, WaitKind.CHILDREN, WaitKind.SLEEP)


def park_reason(waiting: Iterable[WaitView]) -> Reason:
    """Return the reason of a park for these waits: a signal goes before children and sleeps."""
    kinds = kinds_of(waiting)
    if kinds == {WaitKind.SLEEP}:
        return Reason.SLEEPING
    return Reason.WAITING_FOR_SIGNAL if WaitKind.SIGNAL in kinds else Reason.WAITING_FOR_CHILDREN


def parked_message(waiting: Sequence[WaitView]) -> str:
    """Return what a parked job waits for, in words."""
    first = next((one for one in waiting if one.kind != WaitKind.SLEEP), waiting[0])
    more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
    if first.kind == WaitKind.SLEEP:
        return f"sleeps until {first.until} ({first.key}{more})"
    until = f" until {first.until}" if first.until else ""
    what = shown_name(first.kind, first.key)
    return f"waits for {what[0].lower()}{what[1:]}{more}{until}"
