"""How the items of a chunk are counted, by what is read of its job."""

from dataclasses import replace
from typing import Any

from asyncjob.lifecycle.arrays.chunk_jobs import read_outcome
from asyncjob.lifecycle.arrays.chunks import ChunkReport, ItemError, read_checkpoint
from asyncjob.lifecycle.arrays.counting import MAX_RANGES, count_chunk, fail_items
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.state import ArrayState, OpenChunkEntry

ITEMS = ItemRanges.parse("10-19")
ENTRY = OpenChunkEntry("thumbs-1", ITEMS, 1, "uid-1")
SUSPECT = replace(ENTRY, suspect=True)
REFERENCE = {"uri": "file:///results/a", "sizeBytes": 9, "sha256": "0" * 64}


def count(entry: OpenChunkEntry = ENTRY, **status: Any) -> ArrayState:
    """Return the state after a chunk with this status has been counted."""
    job = {"metadata": {"uid": "uid-1"}, "status": status}
    state = ArrayState(total=20, next=20, open=(entry,))
    return count_chunk(state, entry, read_outcome(job, entry), cancelled=False)


def checkpoint(done: str, failed: str = "", *errors: ItemError) -> Any:
    report = ChunkReport(ItemRanges.parse(done), ItemRanges.parse(failed), errors)
    return report.checkpoint(ITEMS)


def test_a_chunk_whose_result_was_offloaded_is_counted_by_its_checkpoint() -> None:
    state = count(
        phase="Succeeded", resultRef=REFERENCE, checkpoint=checkpoint("10-14,16-19", "15")
    )
    assert (state.succeeded, str(state.failed_items), state.open) == (9, "15", ())
    assert not state.requeued


def test_items_that_an_offloaded_result_alone_tells_of_are_run_again() -> None:
    state = count(phase="Succeeded", resultRef=REFERENCE, checkpoint=checkpoint("10-17"))
    assert (state.succeeded, state.failed, str(state.requeued)) == (8, 0, "18-19")


def test_a_chunk_that_succeeds_without_telling_of_any_item_is_not_run_for_ever() -> None:
    for status in ({"resultRef": REFERENCE}, {"result": {"done": ""}}, {}):
        state = count(phase="Succeeded", **status)
        assert (state.failed, state.requeued) == (10, ItemRanges())


def test_a_chunk_that_no_worker_has_claimed_in_time_fails_no_item() -> None:
    error = {"category": "Timeout"}
    status: Any = {"phase": "DeadLetter", "reason": "QueueTimeout", "error": error}
    state = count(**status)
    assert (state.failed, str(state.requeued), state.errors) == (0, "10-19", ())
    state = count(SUSPECT, **status)
    assert (state.failed, state.suspects, state.requeued) == (0, (ITEMS,), ItemRanges())


def test_a_list_of_failed_items_that_was_full_once_stays_as_it_is() -> None:
    evens = ItemRanges.of(range(0, 2 * MAX_RANGES + 2, 2))
    full = fail_items(ArrayState(), evens, [])
    assert (len(full.failed_items.ranges), full.failed_unlisted) == (MAX_RANGES, 1)
    joined = fail_items(full, ItemRanges.of([3, 5001, 5002]), [])
    assert (joined.failed_items, joined.failed_unlisted) == (full.failed_items, 4)
    assert joined.failed == MAX_RANGES + 4


def test_an_error_without_a_category_is_an_internal_one() -> None:
    error = ItemError(15, "Odd", "", "no")
    reported = checkpoint("10-14,16-19", "15", error)
    assert reported["errors"][0]["category"] == ""
    [read] = read_checkpoint(reported, ITEMS).errors
    assert read == ItemError(15, "Odd", "Internal", "no")
