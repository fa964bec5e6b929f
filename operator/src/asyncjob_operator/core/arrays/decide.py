"""The decision about one array: cut chunks, create them, count those that end, remove them.

A chunk is reserved in the status before it is created, and only the operator that has made itself
the writer creates it, for a while: the same protocol as that of scheduled runs, whose constants it
shares. A chunk is counted by the very write that takes it off the list of open ones, so it counts
once, whatever dies in between; what is not on the list is never counted, and deleted.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.chunks import chunk_name
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.arrays.counting import count_chunk, redrive, return_chunk
from asyncjob_operator.core.arrays.snapshot import (
    GONE,
    ArrayDecision,
    ArrayEffect,
    ArraySnapshot,
    ChunkJob,
    ControlChunks,
    CreateChunks,
    DeleteArray,
    DeleteChunks,
    ReadChunks,
    WriteArrayStatus,
    ended_phase,
)
from asyncjob_operator.core.arrays.view import (
    ArrayState,
    ArrayView,
    OpenChunkEntry,
    state_to_json,
)
from asyncjob_operator.core.now import Now, to_epoch
from asyncjob_operator.core.schedules.reservation import (
    MAX_CLAIMS,
    TAKEOVER_DELAY_SECONDS,
    may_create,
)

WRITE_INTERVAL: Final = 0.5
"""Seconds between two writes of one array's status; what happens meanwhile is in the next."""

LARGE_WRITE_INTERVAL: Final = 5.0
"""The same of an array with a large payload or large items, which each write stores again."""

CREATE_BATCH: Final = 50
"""Chunks that are created before the claim is checked again."""

MAX_CHUNK_RANGES: Final = 20
"""Ranges of one chunk's items: `open` holds up to a hundred chunks and must stay small."""


def decide_array(snapshot: ArraySnapshot, now: Now) -> ArrayDecision:
    """Return the one effect due now, or when to evaluate the array again if nothing changes."""
    array = snapshot.array
    if array.deleting:
        return ArrayDecision()
    if ended_phase(array.state.phase):
        return _decide_ended(snapshot, now)
    if snapshot.uncreated and not array.cancel:
        # What is counted goes first: it may take up the room that a quota has for new chunks.
        counted = _delete_unlisted(snapshot)
        return ArrayDecision(counted) if counted else _create_reserved(snapshot, now)
    return _decide_running(snapshot, now)


def _create_reserved(snapshot: ArraySnapshot, now: Now) -> ArrayDecision:
    """Create what is reserved, after making sure that nobody else does."""
    if not snapshot.is_writer:
        free_at = snapshot.writer_since + TAKEOVER_DELAY_SECONDS
        if now.monotonic < free_at:
            return ArrayDecision(None, free_at)
        return ArrayDecision(_claim(snapshot, "take-over"))
    if not may_create(snapshot.claimed_at, now.monotonic):
        return ArrayDecision(_claim(snapshot, "renew"))
    return ArrayDecision(CreateChunks(snapshot.uncreated[:CREATE_BATCH]))


def _decide_running(snapshot: ArraySnapshot, now: Now) -> ArrayDecision:
    """Write what has changed if the last write is long enough ago; meanwhile see to the chunks."""
    unread = _unread(snapshot)
    write = None if unread else _write_of(snapshot, advance(snapshot, now))
    written_at = snapshot.written_at
    interval = LARGE_WRITE_INTERVAL if snapshot.array.large else WRITE_INTERVAL
    if written_at is None or written_at + interval <= now.monotonic:
        if unread:
            return ArrayDecision(ReadChunks(unread))
        if write:
            return ArrayDecision(write)
    is_due = written_at is not None and bool(unread or write)
    return ArrayDecision(
        _see_to_chunks(snapshot), (written_at or 0.0) + interval if is_due else None
    )


def _decide_ended(snapshot: ArraySnapshot, now: Now) -> ArrayDecision:
    array = snapshot.array
    if array.state.phase is ArrayPhase.FAILED and array.redrive > array.state.redrives:
        return ArrayDecision(_write_of(snapshot, redrive(array), "redrive"))
    if snapshot.unlisted:
        return ArrayDecision(_delete_unlisted(snapshot))
    ttl, completed = array.ttl_seconds_after_finished, array.state.completion_time
    if ttl is None or completed is None:
        return ArrayDecision()
    removed_at = to_epoch(completed, default=float("inf")) + ttl
    if removed_at <= now.wall:
        return ArrayDecision(DeleteArray())
    return ArrayDecision(None, now.monotonic + min(removed_at - now.wall, 60.0))


def _unread(snapshot: ArraySnapshot) -> tuple[OpenChunkEntry, ...]:
    """Return the chunks that have ended or are gone as far as is known, but not yet read live."""
    unread = []
    for entry in snapshot.array.state.open:
        uid, known = snapshot.uid_of(entry), snapshot.chunks.get(entry.name)
        if uid in (None, GONE) or entry.name in snapshot.outcomes:
            continue
        if known is None or known.finished or known.uid != uid:
            unread.append(entry)
    return tuple(unread[:CREATE_BATCH])


def advance(snapshot: ArraySnapshot, now: Now) -> ArrayState:
    """Return the state after everything that has happened, and with new chunks reserved."""
    array = snapshot.array
    state = replace(array.state, total=array.total)
    if snapshot.oversize:
        return _end(state, ArrayPhase.FAILED, ArrayReason.PAYLOAD_TOO_LARGE, snapshot.oversize, now)
    for entry in state.open:
        state = _settle(snapshot, state, entry)
    state = _explain(array, state)
    if not array.cancel and not array.suspend and _stop_reason(array, state) is None:
        state = _cut(snapshot, state, now)
    return _finish(array, state, now)


def _settle(snapshot: ArraySnapshot, state: ArrayState, entry: OpenChunkEntry) -> ArrayState:
    """Count a chunk that has ended, take back one that is gone, note the UID of one that exists."""
    uid = snapshot.uid_of(entry)
    if uid in (None, GONE):
        # None only where the array is cancelled: who may still create it creates what nobody lists.
        return return_chunk(state, entry)
    if entry.name in snapshot.outcomes:
        outcome = snapshot.outcomes[entry.name]
        if outcome is None or outcome.uid != uid:
            return return_chunk(state, entry)
        if outcome.finished:
            return count_chunk(state, entry, outcome, cancelled=snapshot.array.cancel)
    if entry.uid == uid:
        return state
    noted = replace(entry, uid=uid)
    return replace(
        state, open=tuple(noted if one.name == entry.name else one for one in state.open)
    )


def _explain(array: ArrayView, state: ArrayState) -> ArrayState:
    if array.cancel:
        return replace(state, reason=ArrayReason.CANCEL_REQUESTED, message="")
    if array.suspend:
        return replace(
            state, reason=ArrayReason.SUSPENDED, message="no chunk is created or claimed"
        )
    if state.reason in {ArrayReason.SUSPENDED, ArrayReason.CANCEL_REQUESTED}:
        return replace(state, reason=None, message="")
    return state


def _stop_reason(array: ArrayView, state: ArrayState) -> tuple[ArrayReason, str] | None:
    """Return why no further chunk is cut, if none is."""
    if state.failed_unlisted:
        return (
            ArrayReason.TOO_SCATTERED,
            "the failed items take more ranges than the status has room for",
        )
    limit = array.failure_limit
    if limit is not None and state.failed > limit:
        return (
            ArrayReason.TOO_MANY_FAILED,
            f"{state.failed} items have failed, and at most {limit} may",
        )
    return None


def _cut(snapshot: ArraySnapshot, state: ArrayState, now: Now) -> ArrayState:
    """Reserve as many chunks as there is room for: suspects first, one of them at a time."""
    array = snapshot.array
    objects = len(state.open) + len(snapshot.unlisted)
    # A chunk that this very write counts exists until it is deleted.
    objects += len(array.state.open) - sum(
        entry.name in {one.name for one in state.open} for entry in array.state.open
    )
    room = min(array.parallelism - len(state.open), 2 * array.parallelism - objects)
    before = state
    while room > 0:
        cut = _next_items(array, state)
        if cut is None:
            break
        state, items, suspect = cut
        generation = state.generation + 1
        name = chunk_name(array.name, array.uid, items.ranges[0][0], generation)
        entry = OpenChunkEntry(name, items, generation, suspect=suspect)
        state = replace(state, open=(*state.open, entry), generation=generation)
        room -= 1
    if state is before:
        return state
    return replace(
        _as_writer(snapshot, state),
        phase=ArrayPhase.RUNNING,
        start_time=state.start_time or now.timestamp,
    )


def _next_items(array: ArrayView, state: ArrayState) -> tuple[ArrayState, ItemRanges, bool] | None:
    if state.suspects and not any(entry.suspect for entry in state.open):
        return replace(state, suspects=state.suspects[1:]), state.suspects[0], True
    if state.requeued:
        items = state.requeued.first_items(array.chunk_size, MAX_CHUNK_RANGES)
        return replace(state, requeued=state.requeued - items), items, False
    if state.next < state.total:
        end = min(state.next + array.chunk_size, state.total)
        return replace(state, next=end), ItemRanges.between(state.next, end), False
    return None


def _finish(array: ArrayView, state: ArrayState, now: Now) -> ArrayState:
    """End the array once no chunk is open and none will be."""
    if state.open:
        return state
    if array.cancel:
        return _end(state, ArrayPhase.CANCELLED, ArrayReason.CANCEL_REQUESTED, "", now)
    stop = _stop_reason(array, state)
    if stop:
        return _end(state, ArrayPhase.FAILED, *stop, now)
    if not state.all_cut:
        return state
    if state.failed > (array.failure_limit or 0):
        message = f"{state.failed} of {state.total} items have failed"
        return _end(state, ArrayPhase.FAILED, ArrayReason.ITEMS_FAILED, message, now)
    return _end(state, ArrayPhase.SUCCEEDED, None, "", now)


def _end(
    state: ArrayState, phase: ArrayPhase, reason: ArrayReason | None, message: str, now: Now
) -> ArrayState:
    return replace(
        state, phase=phase, reason=reason, message=message, completion_time=now.timestamp
    )


def _as_writer(snapshot: ArraySnapshot, state: ArrayState) -> ArrayState:
    return replace(
        state, writer=snapshot.identity[:256], claims=snapshot.array.state.claims % MAX_CLAIMS + 1
    )


def _claim(snapshot: ArraySnapshot, policy: str) -> WriteArrayStatus | None:
    return _write_of(snapshot, _as_writer(snapshot, snapshot.array.state), policy)


def _write_of(
    snapshot: ArraySnapshot, state: ArrayState, policy: str = "advance"
) -> WriteArrayStatus | None:
    """Return the write of what differs, None if nothing does."""
    stored = snapshot.array.status
    fields: dict[str, Json] = {
        name: value for name, value in state_to_json(state).items() if stored.get(name) != value
    }
    if state.reason is ArrayReason.REDRIVE_REFUSED:
        fields.pop("conditions", None)  # it goes on to say why the array has failed
    if not fields:
        return None
    return WriteArrayStatus(policy, state, fields, claims="claims" in fields)


def _see_to_chunks(snapshot: ArraySnapshot) -> ArrayEffect | None:
    """Cancel, suspend or resume chunks as the array says, and delete those that are counted."""
    array = snapshot.array
    listed = [snapshot.chunks.get(entry.name) for entry in array.state.open]
    unfinished = [chunk for chunk in listed if chunk and not chunk.finished and not chunk.deleting]
    if array.cancel:
        running = tuple(chunk for chunk in unfinished if not chunk.cancel_requested)
        if running:
            return ControlChunks(running, {"cancel": True})
    else:
        changed = tuple(
            chunk
            for chunk in unfinished
            if chunk.suspended != array.suspend
            and (chunk.phase is not Phase.RUNNING or not array.suspend)
        )
        if changed:
            return ControlChunks(changed, {"suspend": array.suspend})
    return _delete_unlisted(snapshot)


def _delete_unlisted(snapshot: ArraySnapshot) -> DeleteChunks | None:
    gone = tuple(chunk for chunk in snapshot.unlisted if not chunk.deleting)[:CREATE_BATCH]
    return DeleteChunks(gone) if gone else None


def decide_orphans(chunks: Mapping[str, ChunkJob]) -> ControlChunks | DeleteChunks | None:
    """Return what is due for the chunks of an array that is gone: they are cancelled, then deleted.

    A job that only bears the label, and names no array, is none of ours.
    """
    ours = [chunk for chunk in chunks.values() if chunk.array and not chunk.deleting]
    finished = tuple(chunk for chunk in ours if chunk.finished)
    running = tuple(chunk for chunk in ours if not chunk.finished and not chunk.cancel_requested)
    if running:
        return ControlChunks(running[:CREATE_BATCH], {"cancel": True})
    return DeleteChunks(finished[:CREATE_BATCH]) if finished else None
