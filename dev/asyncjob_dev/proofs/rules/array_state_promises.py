"""What is promised of each version of an array, written without the rules.

The formulas read fields, ask of interval notation what `intervals` knows, and know nothing of CEL.
"""

from typing import Final, cast

import z3

from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.models.array import MAX_ITEM_RANGES
from asyncjob_dev.proofs.rules.array_versions import (
    ENDED,
    chunks,
    count,
    listed_items,
    open_items,
    suspected_items,
)
from asyncjob_dev.proofs.rules.intervals import parts_of
from asyncjob_dev.proofs.rules.symbols import (
    Bool,
    Code,
    Number,
    Record,
    Sequence,
    all_of,
    any_of,
    implies,
    negation,
    same_truth,
)
from asyncjob_dev.proofs.rules.versions import Promise, Seen

_CONDITIONS: Final = {
    ArrayPhase.SUCCEEDED: "Complete",
    ArrayPhase.FAILED: "Failed",
    ArrayPhase.CANCELLED: "Cancelled",
}


def _items_of_spec(array: Seen) -> Number:
    """Return how many items there are, 0 as long as the records of a file are not counted."""
    inline = array.entry("spec.items.inline")
    size = cast("Sequence", inline.value).size
    count = array.number("spec.items.count")
    records = array.number("status.index.records")
    given = z3.If(inline.present, size, records)
    return cast("Number", z3.If(array.has("spec.items.count"), count, given))


def _has_one_source(array: Seen) -> Bool:
    sources = [(array.has(f"spec.items.{name}"), 1) for name in ("count", "inline", "from")]
    return cast("Bool", z3.PbEq(sources, 1))


def _total_is_that_of_the_items(array: Seen) -> Bool:
    total = count(array, "total")
    known = any_of(cast("Bool", total == 0), cast("Bool", total == _items_of_spec(array)))
    return all_of(known, implies(array.has("status.index"), array.has("spec.items.from")))


def _adds_up(array: Seen) -> Bool:
    everywhere = (
        *(count(array, "succeeded"), count(array, "failed"), open_items(array)),
        *(listed_items(array, "requeued"), suspected_items(array)),
    )
    next_item = count(array, "next")
    return all_of(
        cast("Bool", z3.Sum(*everywhere) == next_item),
        cast("Bool", next_item <= count(array, "total")),
    )


def _failures_are_listed(array: Seen) -> Bool:
    unlisted = count(array, "failedUnlisted")
    entry = array.entry("status.failedItems")
    full = cast("Bool", parts_of(cast("Code", entry.value).code) == MAX_ITEM_RANGES)
    return all_of(
        cast("Bool", count(array, "failed") == listed_items(array, "failedItems") + unlisted),
        implies(cast("Bool", unlisted > 0), all_of(entry.present, full)),
    )


def _chunks_are_apart(array: Seen) -> Bool:
    listed = list(chunks(array))
    newest = count(array, "generation")
    said = []
    for place, (there, chunk) in enumerate(listed):
        generation = chunk.number("generation")
        said.append(implies(there, cast("Bool", generation <= newest)))
        for also, other in listed[:place]:
            apart = cast("Bool", other.number("generation") != generation)
            said.append(implies(all_of(there, also), apart))
    return all_of(*said)


def _is_told_to_have_ended(array: Seen) -> Bool:
    ended, entry = array.phase(*ENDED), array.entry("status.conditions")
    conditions = cast("Sequence", entry.value)
    first = Seen(cast("Record", conditions.entries[0]))
    one = all_of(cast("Bool", conditions.size == 1), first.text("status", "True"))
    return all_of(
        same_truth(array.has("status.completionTime"), ended),
        same_truth(entry.present, ended),
        implies(ended, one),
        *(
            implies(array.phase(phase), first.text("type", name))
            for phase, name in _CONDITIONS.items()
        ),
    )


def _succeeds_with_all_items(array: Seen) -> Bool:
    counted = cast("Number", count(array, "succeeded") + count(array, "failed"))
    known = any_of(
        negation(array.has("spec.items.from")),
        array.has("status.index"),
    )
    all_counted = all_of(known, cast("Bool", counted == _items_of_spec(array)))
    return implies(array.phase(ArrayPhase.SUCCEEDED), all_counted)


def _succeeds_within_the_limit(array: Seen) -> Bool:
    failed, percent = count(array, "failed"), array.number("spec.maxFailedPercent")
    share = cast("Bool", failed * 100 <= count(array, "total") * percent)
    within = cast("Bool", failed <= array.number("spec.maxFailed"))
    limited = z3.If(array.has("spec.maxFailed"), within, share)
    return implies(array.phase(ArrayPhase.SUCCEEDED), limited)


def _requests_are_answered(array: Seen) -> Bool:
    asked, done = array.number("spec.redrive"), count(array, "redrives")
    is_open = implies(cast("Bool", asked > done), array.phase(ArrayPhase.FAILED))
    return all_of(cast("Bool", done <= asked), is_open)


def _starts_admitted(array: Seen) -> Bool:
    waits = any_of(array.has("spec.notBefore"), array.has("spec.dependsOn"))
    some = any_of(
        cast("Bool", count(array, "generation") > 0), *(there for there, _ in chunks(array))
    )
    return implies(all_of(waits, some), array.flag("status.admitted"))


ARRAY_STATES: Final = {
    "source": Promise("An array has its items from exactly one place.", of_state=_has_one_source),
    "total": Promise(
        "total is the number of items, once that is known; only a file has an index.",
        of_state=_total_is_that_of_the_items,
    ),
    "sum": Promise(
        "succeeded, failed, and the items in open, requeued and suspects are together next, which "
        "is not more than total.",
        of_state=_adds_up,
    ),
    "counted": Promise(
        "No more items are done or have failed than there are.",
        of_state=lambda array: cast(
            "Bool", count(array, "succeeded") + count(array, "failed") <= count(array, "total")
        ),
    ),
    "failures": Promise(
        "Each failed item is listed, as long as there is room.", of_state=_failures_are_listed
    ),
    "apart": Promise(
        "Each chunk in open has a generation of its own, at most that of the array.",
        of_state=_chunks_are_apart,
    ),
    "nothing-open": Promise(
        "An array that has ended has no open chunk.",
        of_state=lambda array: implies(
            array.phase(*ENDED), negation(any_of(*(there for there, _ in chunks(array))))
        ),
    ),
    "told": Promise(
        "An array has a completion time and the one condition of its phase exactly while it has "
        "ended.",
        of_state=_is_told_to_have_ended,
    ),
    "complete": Promise(
        "A succeeded array has counted all its items, those of a file included.",
        of_state=_succeeds_with_all_items,
    ),
    "limit": Promise(
        "No more items of a succeeded array have failed than its spec allows.",
        of_state=_succeeds_within_the_limit,
    ),
    "asked-to-cancel": Promise(
        "A cancelled array was to be cancelled.",
        of_state=lambda array: implies(
            array.phase(ArrayPhase.CANCELLED), array.flag("spec.cancel")
        ),
    ),
    "answered": Promise(
        "Redrives that happened were asked for; an open redrive is on a failed array.",
        of_state=_requests_are_answered,
    ),
    "admitted": Promise(
        "An array with notBefore or dependsOn has chunks only once it is admitted.",
        of_state=_starts_admitted,
    ),
}
"""Promises about each version of an array."""
