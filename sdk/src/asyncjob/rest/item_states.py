"""What has become of the items of an array, as far as its status says. Pure."""

from dataclasses import dataclass

from asyncjob.lifecycle.arrays.item_ranges import NO_ITEMS, ItemRanges
from asyncjob.rest.arrays import ArrayInfo


@dataclass(frozen=True, slots=True)
class ItemState:
    """How many items are in a state, and which, where that is known."""

    state: str
    count: int
    items: str


def succeeded_items(array: ArrayInfo) -> ItemRanges:
    """Return which items are done; the array is read with its status.

    Failed items that its status has no room for are among them.
    """
    status, left = array.status, NO_ITEMS
    if status is None:
        return NO_ITEMS
    notations = (
        *(chunk.items for chunk in status.open or ()),
        *(status.suspects or ()),
        status.requeued or "",
        status.failed_items or "",
    )
    for one in notations:
        left |= ItemRanges.parse(one)
    return ItemRanges.between(0, status.next or 0) - left


def run_items(array: ArrayInfo) -> ItemRanges:
    """Return which items this array has run to their end: those that are done and not skipped."""
    return succeeded_items(array) - _skipped(array)


def _skipped(array: ArrayInfo) -> ItemRanges:
    skip = array.spec.items.skip if array.spec else None
    return ItemRanges.parse(skip or "")


def item_states(array: ArrayInfo) -> list[ItemState]:
    """Return what has become of all items; the array is read with its status.

    Items that are done already and that the array has not passed yet are told apart: where it ends
    before it gets to them, they are done all the same.
    """
    status = array.status
    opened, requeued, suspects, failed = NO_ITEMS, NO_ITEMS, NO_ITEMS, NO_ITEMS
    begun = 0
    if status:
        for chunk in status.open or ():
            opened |= ItemRanges.parse(chunk.items)
        for one in status.suspects or ():
            suspects |= ItemRanges.parse(one)
        requeued = ItemRanges.parse(status.requeued or "")
        failed = ItemRanges.parse(status.failed_items or "")
        begun = status.next or 0
    left = ItemRanges.between(begun, array.total)
    ahead = left & _skipped(array)
    never = left - ahead
    succeeded = str(succeeded_items(array)) if len(failed) == array.failed else ""
    return [
        ItemState("succeeded", array.succeeded, succeeded),
        ItemState("failed", array.failed, str(failed)),
        ItemState("under way", len(opened), str(opened)),
        ItemState("to be run again", len(requeued | suspects), str(requeued | suspects)),
        ItemState("to do", len(never), str(never)),
        *([ItemState("to be skipped", len(ahead), str(ahead))] if ahead else []),
    ]
