"""The items of an array that comes back: those that are done are not run again. Pure."""

from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.lifecycle.arrays.counting import MAX_RANGES
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.skipped_items import count_skipped, done_items
from asyncjob.lifecycle.arrays.state import read_array


def all_items(obj: JsonObject) -> JsonObject:
    """Return the items of an exported array, none of them skipped."""
    items: dict[str, Json] = dict(child(child(obj, "spec"), "items"))
    items.pop("skip", None)
    if "from" in items:
        items["from"] = {k: v for k, v in child(items, "from").items() if k != "version"}
    return items


def remaining_items(obj: JsonObject) -> tuple[JsonObject, int]:
    """Return the items of an exported array with what is done skipped.

    And how many that are done are run again all the same, because they cannot be listed. Records of
    a file are known by their numbers, which hold for one version of it.
    """
    array = read_array(obj)
    skipped = _longest(done_items(array))
    again = array.state.succeeded - count_skipped(skipped, 0, array.state.next)
    items: dict[str, Json] = dict(child(child(obj, "spec"), "items"))
    if skipped:
        items["skip"] = str(skipped)
        source, index = child(items, "from"), array.state.index
        if index is not None and not text(source, "version"):
            items["from"] = {**source, "version": index.version}
    return items, max(again, 0)


def _longest(items: ItemRanges) -> ItemRanges:
    """Return what a spec has room for: of more ranges the longest."""
    ranges = sorted(items.ranges, key=lambda one: one[0] - one[1])[:MAX_RANGES]
    return ItemRanges(tuple(sorted(ranges)))
