"""Rules of one array: what a version must be by itself, and what may follow it.

Written by hand from what arrays promise, and not from the rules by which the API server refuses.
"""

from collections.abc import Mapping
from typing import Final

from asyncjob.audit import catalog
from asyncjob.audit.arrays.array_version import ArrayVersion
from asyncjob.audit.arrays.item_sets import (
    ItemSet,
    items_between,
    joined,
    number_of,
    shown,
    without,
)
from asyncjob.audit.catalog import Broken

LEGAL_PHASES: Final[Mapping[str, frozenset[str]]] = {
    "Pending": frozenset({"Running", "Succeeded", "Failed", "Cancelled"}),
    "Running": frozenset({"Succeeded", "Failed", "Cancelled"}),
    "Failed": frozenset({"Running", "Pending"}),
    "Succeeded": frozenset(),
    "Cancelled": frozenset(),
}
_ROOM_FOR_RANGES: Final = 1000
"""Ranges of items that an array has room for."""

_FINAL: Final = frozenset({"Succeeded", "Cancelled"})
_CONDITIONS: Final = {
    "Succeeded": ("Complete",),
    "Failed": ("Failed",),
    "Cancelled": ("Cancelled",),
}


def check_created(now: ArrayVersion) -> Broken:
    """Judge the first version of an array whose creation was seen."""
    counters = {
        "next": now.next,
        "succeeded": now.succeeded,
        "failed": now.failed,
        "generation": now.generation,
        "redrives": now.redrives,
        "open chunks": now.open_count,
    }
    grown = ", ".join(f"{name} {value}" for name, value in counters.items() if value)
    if now.phase != "Pending" or grown:
        yield catalog.ARRAY_CREATED, f"created {now.phase}{f' with {grown}' if grown else ''}"


def check_version(now: ArrayVersion) -> Broken:
    """Judge a version by itself."""
    if now.phase not in LEGAL_PHASES:
        yield catalog.ARRAY_TRANSITION, f"phase {now.phase} is unknown"
        return
    if now.has_completion != now.ended or now.conditions != _CONDITIONS.get(now.phase, ()):
        presence = "with" if now.has_completion else "without"
        conditions = ", ".join(now.conditions) or "none"
        yield (
            catalog.ARRAY_FINAL,
            f"{now.phase} {presence} completionTime, and its conditions are: {conditions}",
        )
    if now.ended and now.open_count:
        yield catalog.ARRAY_FINAL, f"{now.phase} with {now.open_count} open chunks"
    yield from _check_items(now)


def _check_items(now: ArrayVersion) -> Broken:
    """Judge whether each item is in one place."""
    if now.unreadable:
        yield catalog.ARRAY_ITEMS, now.unreadable
        return
    if len(now.open) != now.open_count:
        yield catalog.ARRAY_ITEMS, "two open chunks have one name"
    parts = [*now.open.values(), now.requeued, *now.suspects, now.failed_items]
    listed = joined(parts)
    places = sum(map(number_of, parts))
    if number_of(listed) != places:
        yield catalog.ARRAY_ITEMS, f"{places - number_of(listed)} items are in two places"
    if listed and listed[-1][1] >= now.next:
        yield (
            catalog.ARRAY_ITEMS,
            f"item {listed[-1][1]} is in a chunk or counted, next is {now.next}",
        )
    if now.failed != number_of(now.failed_items) + now.failed_unlisted:
        yield (
            catalog.ARRAY_ITEMS,
            f"failed is {now.failed}, listed are {number_of(now.failed_items)} and "
            f"{now.failed_unlisted} are not",
        )
    under_way = places - number_of(now.failed_items)
    known = now.succeeded + now.failed + under_way + now.total - now.next
    if now.has_total and known != now.total:
        yield (
            catalog.ARRAY_ITEMS,
            f"{now.succeeded} succeeded, {now.failed} failed, {under_way} in chunks or to be run "
            f"again, {now.total - now.next} not cut: {known} of {now.total}",
        )


def check_change(was: ArrayVersion, now: ArrayVersion) -> Broken:
    """Judge two versions in a row."""
    yield from _check_spec(was, now)
    redriven = was.phase == "Failed" and now.phase in LEGAL_PHASES["Failed"]
    yield from _check_phase(was, now, redriven=redriven)
    yield from _check_final(was, now)
    yield from _check_counts(was, now, redriven=redriven)
    yield from _check_chunks(was, now)
    yield from _check_counted_once(was, now, redriven=redriven)


def _check_phase(was: ArrayVersion, now: ArrayVersion, *, redriven: bool) -> Broken:
    legal = was.phase == now.phase or now.phase in LEGAL_PHASES.get(was.phase, frozenset())
    nothing_to_run = 0 < now.total == number_of(now.skip)
    if not legal or ((was.phase, now.phase) == ("Pending", "Succeeded") and not nothing_to_run):
        yield catalog.ARRAY_TRANSITION, f"the phase went from {was.phase} to {now.phase}"
    if redriven and now.redrives == was.redrives:
        yield catalog.ARRAY_TRANSITION, "a failed array went on without a redrive"
    if redriven and now.phase == "Pending" and now.generation:
        yield catalog.ARRAY_TRANSITION, f"it waits again, and {now.generation} chunks were cut"


def check_across_gap(was: ArrayVersion, now: ArrayVersion) -> Broken:
    """Judge two versions between which some may be missing: what grows, and what stays."""
    yield from _check_spec(was, now)
    if was.phase in _FINAL and now.frozen != was.frozen:
        yield catalog.ARRAY_FINAL, f"the status of a {was.phase} array changed"
    yield from _check_counts(was, now, redriven=now.redrives != was.redrives)
    if now.redrives == was.redrives:
        yield from _check_kept(was, now)


def _check_spec(was: ArrayVersion, now: ArrayVersion) -> Broken:
    if now.fixed != was.fixed:
        yield catalog.ARRAY_SPEC, "another field of the spec changed than the control fields"
    if was.cancel and not now.cancel:
        yield catalog.ARRAY_SPEC, "cancel was taken back"
    if now.redrive < was.redrive:
        yield catalog.ARRAY_SPEC, f"redrive shrank from {was.redrive} to {now.redrive}"


def _check_final(was: ArrayVersion, now: ArrayVersion) -> Broken:
    if was.phase in _FINAL and now.frozen != was.frozen:
        yield catalog.ARRAY_FINAL, f"the status of a {was.phase} array changed"
    elif was.phase == now.phase == "Failed" and now.frozen != was.frozen:
        refused = now.redrives > was.redrives and now.frozen_but_redrive == was.frozen_but_redrive
        if not refused:
            yield catalog.ARRAY_FINAL, "the status of a Failed array changed without a redrive"


def _check_counts(was: ArrayVersion, now: ArrayVersion, *, redriven: bool) -> Broken:
    for name, old, new in (
        ("next", was.next, now.next),
        ("succeeded", was.succeeded, now.succeeded),
        ("generation", was.generation, now.generation),
        ("redrives", was.redrives, now.redrives),
    ):
        if new < old:
            yield catalog.ARRAY_COUNTS, f"{name} went from {old} to {new}"
    if now.failed < was.failed and not redriven:
        yield catalog.ARRAY_COUNTS, f"failed went from {was.failed} to {now.failed}"
    if was.total and now.total != was.total:
        yield catalog.ARRAY_COUNTS, f"total went from {was.total} to {now.total}"
    if now.redrives > max(was.redrives, now.redrive):
        yield catalog.ARRAY_COUNTS, f"redrives is {now.redrives}, {now.redrive} were asked for"


def _check_chunks(was: ArrayVersion, now: ArrayVersion) -> Broken:
    """Judge the list of chunks under way."""
    added = [name for name in now.open if name not in was.open]
    cut = now.generation - was.generation
    if len(added) != cut:
        yield (
            catalog.ARRAY_RESERVED,
            f"{len(added)} chunks were reserved, and generation grew by {cut}",
        )
    for name, its_items in now.open.items():
        if was.open.get(name, its_items) != its_items:
            yield (
                catalog.ARRAY_RESERVED,
                f"the items of {name} went from {shown(was.open[name])} to {shown(its_items)}",
            )


def counted_by(was: ArrayVersion, now: ArrayVersion) -> dict[str, ItemSet]:
    """Return the chunks that came off the list with items that count since, and these."""
    if now.total == was.total and len(now.open) == len(was.open) and now.open == was.open:
        return {}
    uncounted = now.uncounted
    gone = {name: its for name, its in was.open.items() if name not in now.open}
    found = {name: without(its, uncounted) for name, its in gone.items()}
    return {name: its for name, its in found.items() if its}


def passed_by(was: ArrayVersion, now: ArrayVersion) -> ItemSet:
    """Return the items that need not be run, and that `next` has passed since."""
    passed = items_between(was.next, now.next)
    return without(passed, without(passed, now.skip))


def _check_counted_once(was: ArrayVersion, now: ArrayVersion, *, redriven: bool) -> Broken:
    """Judge which items count: those of chunks that came off the list, once and for good."""
    if was.unreadable or now.unreadable:
        return
    if not redriven:
        yield from _check_kept(was, now)
    elif without(was.counted, now.counted) != was.failed_items:
        yield (
            catalog.ARRAY_ONCE,
            f"{shown(without(was.counted, now.counted))} are run again, failed have "
            f"{shown(was.failed_items)}",
        )
    new = without(now.counted, was.counted)
    allowed = [*counted_by(was, now).values(), passed_by(was, now)]
    returned = sum(len(its) for name, its in was.open.items() if name not in now.open)
    if len(was.requeued) + returned > _ROOM_FOR_RANGES:
        allowed.append(was.requeued)  # what there is no room for fails
    if beside := without(new, joined(allowed)):
        yield catalog.ARRAY_ONCE, f"{shown(beside)} count, and were in no chunk that ended"
    newly_failed = without(now.failed_items, was.failed_items)
    if forged := without(newly_failed, new):
        yield catalog.ARRAY_ONCE, f"{shown(forged)} failed after they had counted as done"


def _check_kept(was: ArrayVersion, now: ArrayVersion) -> Broken:
    """Judge whether what counted still counts, and as the same."""
    if was.unreadable or now.unreadable:
        return
    if again := without(was.counted, now.counted):
        yield catalog.ARRAY_ONCE, f"{shown(again)} had counted and are to be run again"
    unlisted = number_of(without(was.failed_items, now.failed_items))
    if unlisted > max(0, now.failed_unlisted - was.failed_unlisted):
        gone = shown(without(was.failed_items, now.failed_items))
        yield catalog.ARRAY_ONCE, f"{gone} had failed and no longer have"
