"""How an array goes forward: what has ended is counted, and new chunks are reserved.

It is one function, from what is observed to the next state. Who writes that state, and when, is the
operator's concern, and the test kit's, which both go by it.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.arrays.chunk_size import INITIAL_SIZE, bounded_size, next_size
from asyncjob.lifecycle.arrays.chunks import chunk_name
from asyncjob.lifecycle.arrays.counting import count_chunk, return_chunk
from asyncjob.lifecycle.arrays.item_ranges import NO_ITEMS, ItemRanges
from asyncjob.lifecycle.arrays.observed import (
    GONE,
    ChunkJob,
    ChunkOutcome,
    ObservedArray,
)
from asyncjob.lifecycle.arrays.phases import STOP_REASONS, ArrayPhase, ArrayReason
from asyncjob.lifecycle.arrays.skipped_items import (
    changed_file,
    count_skipped,
    pass_skipped,
    take_next,
)
from asyncjob.lifecycle.arrays.state import ArrayState, ArrayView, OpenChunkEntry
from asyncjob.lifecycle.phases import Phase

INDEX_ITEM: Final = -1
"""In place of a chunk's first item in the name of the job that finds the records of a file."""

MAX_CHUNK_RANGES: Final = 20
"""Ranges of one chunk's items: `open` holds up to a hundred chunks and must stay small."""


def advance(observed: ObservedArray, now: str) -> ArrayState:
    """Return the state after everything that has happened, and with new chunks reserved.

    `now` is the time as it is stored.
    """
    array = observed.array
    state = replace(array.state, total=array.total)
    if observed.oversize:
        return _end(state, ArrayPhase.FAILED, ArrayReason.PAYLOAD_TOO_LARGE, observed.oversize, now)
    for entry in state.open:
        state = _settle(observed, state, entry)
    gate = observed.gate
    if gate and gate.reason is ArrayReason.DEPENDENCY_FAILED and not array.cancel:
        return _end(state, ArrayPhase.FAILED, gate.reason, gate.message, now)
    if array.chunk_size is None and state.total:
        size = next_size(state.chunk_size or INITIAL_SIZE, _counted(observed))
        state = replace(state, chunk_size=size)
    state = _explain(observed, state)
    held = array.cancel or array.suspend or gate is not None
    if not held and _stop_reason(array, state) is None:
        state = _cut(observed, state, now)
    return _finish(array, state, now)


def _settle(observed: ObservedArray, state: ArrayState, entry: OpenChunkEntry) -> ArrayState:
    """Count a chunk that has ended, take back one that is gone, note the UID of one that exists."""
    uid = observed.uid_of(entry)
    if uid in (None, GONE):
        # None only where the array is cancelled: who may still create it creates what nobody lists.
        return return_chunk(state, entry)
    if entry.name in observed.outcomes:
        outcome = observed.outcomes[entry.name]
        if outcome is None or outcome.uid != uid:
            return return_chunk(state, entry)
        if outcome.finished:
            array = observed.array
            return count_chunk(
                state, entry, outcome, cancelled=array.cancel, adapts=array.chunk_size is None
            )
    if entry.uid == uid:
        return state
    noted = replace(entry, uid=uid)
    return replace(
        state, open=tuple(noted if one.name == entry.name else one for one in state.open)
    )


def _counted(observed: ObservedArray) -> Iterator[tuple[OpenChunkEntry, ChunkOutcome]]:
    for entry in observed.array.state.open:
        outcome = observed.outcomes.get(entry.name)
        if outcome is not None and outcome.finished and outcome.uid == observed.uid_of(entry):
            yield entry, outcome


_HELD_REASONS: Final = {
    ArrayReason.SUSPENDED,
    ArrayReason.CANCEL_REQUESTED,
    ArrayReason.NOT_BEFORE,
    ArrayReason.WAITING_FOR_DEPENDENCY,
    ArrayReason.NO_WORKER,
}
"""Reasons that go with what they tell of."""


def _explain(observed: ObservedArray, state: ArrayState) -> ArrayState:
    array, gate = observed.array, observed.gate
    if array.cancel:
        return replace(state, reason=ArrayReason.CANCEL_REQUESTED, message="")
    if array.suspend and state.reason not in STOP_REASONS:
        # With such a reason nothing is cut in any case, and it has to be remembered.
        return replace(
            state, reason=ArrayReason.SUSPENDED, message="no chunk is created or claimed"
        )
    if gate:
        return replace(state, reason=gate.reason, message=gate.message)
    if observed.no_worker and state.reason not in STOP_REASONS:
        return replace(state, reason=ArrayReason.NO_WORKER, message=observed.no_worker)
    if state.reason in _HELD_REASONS:
        return replace(state, reason=None, message="")
    return state


def _stop_reason(array: ArrayView, state: ArrayState) -> tuple[ArrayReason, str] | None:
    """Return why no further chunk is cut, if none is."""
    if state.reason is not None and state.reason in STOP_REASONS:
        return state.reason, state.message
    if changed := changed_file(array, state):
        return ArrayReason.ITEMS_UNREADABLE, changed
    if state.failed_unlisted:
        return (
            ArrayReason.TOO_SCATTERED,
            "the failed items take more ranges than the status has room for",
        )
    limit = array.failure_limit
    if limit is not None and state.failed > limit:
        failed = "1 item has" if state.failed == 1 else f"{state.failed} items have"
        return ArrayReason.TOO_MANY_FAILED, f"{failed} failed, and at most {limit} may"
    return None


def _cut(observed: ObservedArray, state: ArrayState, now: str) -> ArrayState:
    """Reserve as many chunks as there is room for: suspects first, one of them at a time."""
    array = observed.array
    objects = len(state.open) + len(observed.unlisted)
    # A chunk that this very write counts exists until it is deleted.
    objects += len(array.state.open) - sum(
        entry.name in {one.name for one in state.open} for entry in array.state.open
    )
    room = min(array.parallelism - len(state.open), 2 * array.parallelism - objects)
    before, state = state, pass_skipped(array, state)
    size = _chunk_size(array, state)
    while room > 0:
        cut = _next_items(array, state, size)
        if cut is None:
            break
        state, items, suspect = cut
        generation = state.generation + 1
        first = items.ranges[0][0] if items else INDEX_ITEM
        name = chunk_name(array.name, array.uid, first, generation)
        entry = OpenChunkEntry(name, items, generation, suspect=suspect)
        state = replace(state, open=(*state.open, entry), generation=generation)
        room -= 1
    if state is before:
        return state
    return replace(
        state,
        phase=ArrayPhase.RUNNING,
        admitted=state.admitted or array.gated,
        start_time=state.start_time or now,
    )


def _chunk_size(array: ArrayView, state: ArrayState) -> int:
    if array.chunk_size is not None:
        return array.chunk_size
    skipped = count_skipped(array.skip, state.next, state.total)
    left = state.total - state.next - skipped + len(state.requeued)
    return bounded_size(state.chunk_size or INITIAL_SIZE, left, array)


def _next_items(
    array: ArrayView, state: ArrayState, size: int
) -> tuple[ArrayState, ItemRanges, bool] | None:
    if array.items_file is not None and state.index is None:
        return None if state.open else (state, NO_ITEMS, False)
    if state.suspects and not any(entry.suspect for entry in state.open):
        return replace(state, suspects=state.suspects[1:]), state.suspects[0], True
    if state.requeued:
        items = state.requeued.first_items(size, MAX_CHUNK_RANGES)
        return replace(state, requeued=state.requeued - items), items, False
    if state.next < state.total:
        return *take_next(array, state, size, MAX_CHUNK_RANGES), False
    return None


def _finish(array: ArrayView, state: ArrayState, now: str) -> ArrayState:
    """End the array once no chunk is open and none will be."""
    if state.open:
        return state
    if array.cancel:
        return _end(state, ArrayPhase.CANCELLED, ArrayReason.CANCEL_REQUESTED, "", now)
    stop = _stop_reason(array, state)
    if stop:
        return _end(state, ArrayPhase.FAILED, *stop, now)
    if not state.all_cut or (array.items_file is not None and state.index is None):
        return state
    if state.failed > (array.failure_limit or 0):
        message = f"{state.failed} of {state.total} items have failed"
        return _end(state, ArrayPhase.FAILED, ArrayReason.ITEMS_FAILED, message, now)
    message = "the file of the items has no records" if not state.total else ""
    return _end(state, ArrayPhase.SUCCEEDED, None, message, now)


def _end(
    state: ArrayState, phase: ArrayPhase, reason: ArrayReason | None, message: str, now: str
) -> ArrayState:
    return replace(state, phase=phase, reason=reason, message=message, completion_time=now)


def due_control(observed: ObservedArray) -> tuple[tuple[ChunkJob, ...], JsonObject]:
    """Return which chunks are to be cancelled, suspended or resumed, and the fields that do it."""
    array = observed.array
    listed = [observed.chunks.get(entry.name) for entry in array.state.open]
    unfinished = [chunk for chunk in listed if chunk and not chunk.finished and not chunk.deleting]
    if array.cancel:
        cancelled = tuple(chunk for chunk in unfinished if not chunk.cancel_requested)
        return cancelled, {"cancel": True}
    changed = tuple(
        chunk
        for chunk in unfinished
        if chunk.suspended != array.suspend
        and (chunk.phase is not Phase.RUNNING or not array.suspend)
    )
    return changed, {"suspend": array.suspend}
