"""How an ended chunk is counted: which of its items are done, have failed, or are run again.

Each function takes a state and returns the next. Whatever a chunk's report says, each of its items
ends up in exactly one place, so that the counts add up: a worker can report falsely about the items
it was given, and about no others.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from asyncjob.lifecycle.arrays.chunks import (
    ERRORS_KEPT,
    ITEMS_UNREADABLE,
    RESULTS_NOT_STORED,
    ItemError,
)
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.observed import ChunkOutcome
from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.lifecycle.arrays.state import ArrayState, ArrayView, OpenChunkEntry
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import Category

MAX_RANGES: Final = 1000
"""Ranges that the schema allows for failed items, and for those to be run again."""

ENDED_BY_AN_ITEM: Final = frozenset(
    {
        Reason.CRASH_BUDGET_EXHAUSTED,
        Reason.EXECUTION_TIMEOUT,
        Reason.NOT_RETRYABLE,
        Reason.RETRIES_EXHAUSTED,
    }
)
"""Reasons of dead letters for which an item that was running may be to blame: if the error is a
crash or the time limit. A failing item alone never ends its chunk."""


def count_chunk(
    state: ArrayState,
    entry: OpenChunkEntry,
    outcome: ChunkOutcome,
    *,
    cancelled: bool,
    adapts: bool = False,
) -> ArrayState:
    """Return the state with an ended chunk counted and no longer open.

    `cancelled`: the array is being cancelled, so what the chunk has not run is nobody's failure.
    `adapts`: nobody has chosen how many items the chunk has, and they may just be too many.
    """
    if not entry.items:
        return _count_index(state, entry, outcome)
    report = outcome.report
    done = report.done & entry.items
    failed = (report.failed & entry.items) - done
    rest = entry.items - done - failed
    state = replace(state, open=_without(state, entry), succeeded=state.succeeded + len(done))
    state = fail_items(state, failed, report.errors)
    if not rest:
        return state
    if _is_ended_by_an_item(outcome):
        too_large = adapts and not entry.suspect and _is_too_large(outcome, rest)
        return return_items(state, rest) if too_large else _suspect_items(state, rest, outcome)
    stop = _stop_reason(outcome)
    if cancelled or stop:
        return _stop(return_items(state, rest), stop, outcome)
    if _is_untold(outcome):
        return _return(state, entry, rest, "its chunk told nothing about it")
    return fail_items(state, rest, [_chunk_error(rest, outcome)])


def _count_index(state: ArrayState, entry: OpenChunkEntry, outcome: ChunkOutcome) -> ArrayState:
    """Return the state with what an index job has found, or with why there is no index."""
    state = replace(state, open=_without(state, entry))
    if outcome.index is not None:
        return replace(state, index=outcome.index, total=outcome.index.records)
    if outcome.reason == Reason.QUEUE_TIMEOUT:
        return state  # it has not been run: another one is cut
    return _stop(state, _stop_reason(outcome) or ArrayReason.ITEMS_UNREADABLE, outcome)


def _stop_reason(outcome: ChunkOutcome) -> ArrayReason | None:
    """Return why no other chunk would fare better, where no item is to blame."""
    if outcome.phase is not Phase.DEAD_LETTER:
        return None
    if outcome.reason == Reason.UNKNOWN_TYPE:
        return ArrayReason.UNKNOWN_TYPE
    if outcome.error_type in RESULTS_NOT_STORED:
        return ArrayReason.RESULTS_NOT_STORED
    return ArrayReason.ITEMS_UNREADABLE if outcome.error_type in ITEMS_UNREADABLE else None


def _stop(state: ArrayState, reason: ArrayReason | None, outcome: ChunkOutcome) -> ArrayState:
    if reason is None:
        return state
    message = outcome.message or "the index job reports nothing that can be understood"
    if outcome.phase is not Phase.DEAD_LETTER:
        message = f"the index job ended {outcome.phase}: {message}"
    return replace(state, reason=reason, message=message)


def return_chunk(state: ArrayState, entry: OpenChunkEntry) -> ArrayState:
    """Return the state with a chunk that is gone no longer open, and its items to be run again."""
    state = replace(state, open=_without(state, entry))
    return _return(state, entry, entry.items, "its chunk was deleted")


def _return(state: ArrayState, entry: OpenChunkEntry, rest: ItemRanges, why: str) -> ArrayState:
    if entry.suspect:
        return _add_suspects(state, [rest], why)
    return return_items(state, rest)


def return_items(state: ArrayState, returned: ItemRanges) -> ArrayState:
    """Return the state with these items to be run again; what there is no room for fails."""
    requeued = state.requeued | returned
    kept = ItemRanges(requeued.ranges[:MAX_RANGES])
    state = replace(state, requeued=kept)
    beyond = requeued - kept
    if not beyond:
        return state
    message = f"{len(beyond)} items to be run again are too scattered to be kept"
    return fail_items(state, beyond, [_error(beyond, "TooScattered", Category.INTERNAL, message)])


def fail_items(state: ArrayState, failed: ItemRanges, errors: Sequence[ItemError]) -> ArrayState:
    """Return the state with these items failed; beyond the limit they are only counted."""
    listed = state.failed_items | failed
    if state.failed_unlisted:
        # Whatever joins two ranges of a full list would make it look as if it had room.
        listed = state.failed_items
        state = replace(state, failed_unlisted=state.failed_unlisted + len(failed))
    kept = ItemRanges(listed.ranges[:MAX_RANGES])
    return replace(
        state,
        failed_items=kept,
        failed_unlisted=state.failed_unlisted + len(listed) - len(kept),
        errors=(*state.errors, *errors)[-ERRORS_KEPT:],
    )


def redrive(array: ArrayView) -> ArrayState:
    """Return the state of a failed array whose failed items are run again, or why they are not."""
    state = replace(array.state, redrives=array.redrive)
    if array.gated and not state.has_started:
        return replace(
            state,
            phase=ArrayPhase.PENDING,
            reason=ArrayReason.REDRIVEN,
            message="nothing of it has been run yet: it waits and starts again",
            completion_time=None,
        )
    requeued = state.requeued | state.failed_items
    if state.failed_unlisted or len(requeued.ranges) > MAX_RANGES:
        return replace(
            state,
            reason=ArrayReason.REDRIVE_REFUSED,
            message=f"the failed items take more than {MAX_RANGES} ranges, so not all are known",
        )
    return replace(
        state,
        phase=ArrayPhase.RUNNING,
        reason=ArrayReason.REDRIVEN,
        message=f"{len(requeued)} {'item is' if len(requeued) == 1 else 'items are'} run again",
        requeued=requeued,
        failed_items=ItemRanges(),
        completion_time=None,
    )


def _without(state: ArrayState, entry: OpenChunkEntry) -> tuple[OpenChunkEntry, ...]:
    return tuple(one for one in state.open if one.name != entry.name)


def _is_ended_by_an_item(outcome: ChunkOutcome) -> bool:
    return (
        outcome.phase is Phase.DEAD_LETTER
        and outcome.reason in ENDED_BY_AN_ITEM
        and outcome.error_category in {Category.CRASH, Category.TIMEOUT}
    )


def _is_too_large(outcome: ChunkOutcome, rest: ItemRanges) -> bool:
    """Return whether a chunk may just have too many items for its time limit.

    Some are done, and the next chunks are smaller. If none is, the first of them may hang.
    """
    done = outcome.report.done or outcome.report.failed
    return outcome.error_category == Category.TIMEOUT and bool(done) and len(rest) > 1


def _is_untold(outcome: ChunkOutcome) -> bool:
    """Return whether the items that the chunk does not report may just not have been run.

    It waited too long, or its result was offloaded, and its checkpoint does not tell of all items;
    one without any report would be run again without end.
    """
    if outcome.reason == Reason.QUEUE_TIMEOUT:
        return True
    return outcome.result_elsewhere and bool(outcome.report.done or outcome.report.failed)


def _suspect_items(state: ArrayState, rest: ItemRanges, outcome: ChunkOutcome) -> ArrayState:
    """One of these items ends its worker, or hangs: halve until it stands alone."""
    if len(rest) == 1:
        return fail_items(state, rest, [_chunk_error(rest, outcome)])
    return _add_suspects(state, rest.halves(), outcome.message)


def _add_suspects(state: ArrayState, groups: Sequence[ItemRanges], why: str) -> ArrayState:
    for group in groups:
        if sum(len(one.ranges) for one in (*state.suspects, group)) > MAX_RANGES:
            message = f"{len(group)} items are too scattered to be tried apart: {why}"
            error = _error(group, "Crash", Category.CRASH, message)
            state = fail_items(state, group, [error])
        else:
            state = replace(state, suspects=(*state.suspects, group))
    return state


def _chunk_error(rest: ItemRanges, outcome: ChunkOutcome) -> ItemError:
    if _is_ended_by_an_item(outcome):
        crashed = outcome.error_category == Category.CRASH
        name = "Crash" if crashed else "ExecutionTimeout"
        category = Category.CRASH if crashed else Category.TIMEOUT
        return _error(rest, name, category, outcome.message or name)
    others = f" ({len(rest)} items)" if len(rest) > 1 else ""
    message = f"the chunk ended {outcome.phase}{others}: {outcome.message}"
    return _error(rest, outcome.reason or outcome.phase, Category.INTERNAL, message)


def _error(items: ItemRanges, name: str, category: Category, message: str) -> ItemError:
    return ItemError(items.ranges[0][0], name, category.value, message)
