"""Items that an array does not run, because they are done: `items.skip`, and where it comes from.

They are counted as succeeded once `next` has passed them, so that the counts add up as they do for
any other array.
"""

from dataclasses import replace
from typing import Final

from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.lifecycle.arrays.counting import MAX_RANGES
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.state import ArrayState, ArrayView, read_array

_WHERE_ITEMS_ARE: Final = (
    "next",
    "succeeded",
    "failedItems",
    "failedUnlisted",
    "requeued",
    "suspects",
    "open",
    "index",
)
"""Fields of the status that tell it; of others a later version may know more than this one."""


def pass_skipped(array: ArrayView, state: ArrayState) -> ArrayState:
    """Return the state with what is skipped counted, up to the next item that is to be run."""
    left = _left(array, state)
    return _advance_to(state, left.ranges[0][0] if left else state.total)


def take_next(
    array: ArrayView, state: ArrayState, count: int, max_ranges: int
) -> tuple[ArrayState, ItemRanges]:
    """Return the next items to be run, none if there are none, and the state without them."""
    items = _left(array, state).first_items(count, max_ranges)
    for first, last in items.ranges:
        state = replace(_advance_to(state, first), next=last + 1)
    return pass_skipped(array, state), items


def changed_file(array: ArrayView, state: ArrayState) -> str:
    """Return what is wrong with a file that is not the one whose items are skipped, or nothing."""
    if not array.file_version or state.index is None or state.index.version == array.file_version:
        return ""
    return (
        f"the file is {state.index.version}, and items.skip is about {array.file_version}: create "
        "another array, without items.skip and items.from.version, to run all items of this file"
    )


def done_items(array: ArrayView) -> ItemRanges:
    """Return the items of an array that are known to be done.

    None of them is, if items have failed that the status has no room for.
    """
    state = array.state
    if state.failed_unlisted:
        return array.skip
    others = state.requeued | state.failed_items
    for items in (*(entry.items for entry in state.open), *state.suspects):
        others |= items
    return (ItemRanges.between(0, state.next) - others) | array.skip


def count_skipped(skip: ItemRanges, first: int, end: int) -> int:
    """Return how many items are skipped from `first` to before `end`."""
    return len(skip & ItemRanges.between(first, end)) if skip else 0


def unskipped_items(obj: JsonObject) -> JsonObject:
    """Return the items of an exported array, none of them skipped."""
    items: dict[str, Json] = dict(child(child(obj, "spec"), "items"))
    items.pop("skip", None)
    if "from" in items:
        items["from"] = {k: v for k, v in child(items, "from").items() if k != "version"}
    return items


def remaining_items(obj: JsonObject) -> tuple[JsonObject, int]:
    """Return the items of an exported array with what is done skipped.

    And how many that are done are run again all the same, because they cannot be listed. Records of
    a file are known by their numbers, which hold for one version of it. Raises ValueError for a
    status that no operator has written.
    """
    status = child(obj, "status")
    told = {name: status[name] for name in _WHERE_ITEMS_ARE if name in status}
    array = read_array({**obj, "status": told})
    skipped = _longest(done_items(array))
    again = array.state.succeeded - count_skipped(skipped, 0, array.state.next)
    items: dict[str, Json] = dict(child(child(obj, "spec"), "items"))
    if skipped:
        items["skip"] = str(skipped)
        source, index = child(items, "from"), array.state.index
        if index is not None and not text(source, "version"):
            items["from"] = {**source, "version": index.version}
    return items, max(again, 0)


def _left(array: ArrayView, state: ArrayState) -> ItemRanges:
    left = ItemRanges.between(state.next, state.total)
    return left - array.skip if array.skip else left


def _advance_to(state: ArrayState, item: int) -> ArrayState:
    if item == state.next:
        return state
    return replace(state, next=item, succeeded=state.succeeded + item - state.next)


def _longest(items: ItemRanges) -> ItemRanges:
    """Return what a spec has room for: of more ranges the longest."""
    ranges = sorted(items.ranges, key=lambda one: one[0] - one[1])[:MAX_RANGES]
    return ItemRanges(tuple(sorted(ranges)))
