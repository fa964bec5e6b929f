"""What promises about arrays read of a version: its counts, its chunks and its lists of items."""

from collections.abc import Iterator
from typing import Final, cast

import z3

from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES
from asyncjob_dev.proofs.rules.intervals import items_of
from asyncjob_dev.proofs.rules.symbols import (
    Bool,
    Code,
    Number,
    Record,
    Sequence,
    all_of,
)
from asyncjob_dev.proofs.rules.versions import Seen

ENDED: Final = tuple(sorted(ENDED_ARRAY_PHASES))


def notations(array: Seen) -> Iterator[tuple[Bool, Number]]:
    """Yield the notation of each list of items in the status, and whether it is there."""
    for name in ("requeued", "failedItems"):
        entry = array.entry(f"status.{name}")
        yield entry.present, cast("Code", entry.value).code
    for there, group in entries(array, "suspects"):
        yield there, cast("Code", group).code
    for there, chunk in chunks(array):
        yield there, notation_of(chunk)


def entries(array: Seen, name: str) -> Iterator[tuple[Bool, object]]:
    """Yield each entry of a list of the status, after whether it is there."""
    entry = array.entry(f"status.{name}")
    listed = cast("Sequence", entry.value)
    for place, one in enumerate(listed.entries):
        yield all_of(entry.present, cast("Bool", listed.size > place)), one


def chunks(array: Seen) -> Iterator[tuple[Bool, Seen]]:
    """Yield each chunk in open, after whether it is there."""
    for there, chunk in entries(array, "open"):
        yield there, Seen(cast("Record", chunk))


def notation_of(chunk: Seen) -> Number:
    """Return the code of the items of a chunk."""
    return cast("Code", chunk.entry("items").value).code


def total_of(numbers: Iterator[tuple[Bool, Number]]) -> Number:
    """Return the sum of the numbers that are there."""
    return cast("Number", z3.Sum(z3.IntVal(0), *(z3.If(there, one, 0) for there, one in numbers)))


def open_items(array: Seen) -> Number:
    """Return how many items the chunks in open have."""
    return total_of((there, items_of(notation_of(chunk))) for there, chunk in chunks(array))


def listed_items(array: Seen, name: str) -> Number:
    """Return how many items a field of the status names."""
    entry = array.entry(f"status.{name}")
    return total_of(iter([(entry.present, items_of(cast("Code", entry.value).code))]))


def suspected_items(array: Seen) -> Number:
    """Return how many items the groups in suspects have."""
    return total_of(
        (there, items_of(cast("Code", group).code)) for there, group in entries(array, "suspects")
    )


def count(array: Seen, name: str) -> Number:
    """Return a number of the status, 0 if there is none."""
    return array.number(f"status.{name}")
