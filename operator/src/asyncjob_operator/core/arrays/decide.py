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
from asyncjob.lifecycle.arrays.advance import advance, due_control
from asyncjob.lifecycle.arrays.counting import redrive
from asyncjob.lifecycle.arrays.observed import GONE, ChunkJob
from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES, ArrayPhase, ArrayReason
from asyncjob.lifecycle.arrays.state import ArrayState, OpenChunkEntry, state_to_json
from asyncjob_operator.core.arrays.progress import measure
from asyncjob_operator.core.arrays.snapshot import (
    ArrayDecision,
    ArrayEffect,
    ArraySnapshot,
    CancelArray,
    ControlChunks,
    CreateChunks,
    DeleteArray,
    DeleteChunks,
    ReadChunks,
    WriteArrayStatus,
)
from asyncjob_operator.core.decision import CancelCascades
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


def decide_array(snapshot: ArraySnapshot, now: Now) -> ArrayDecision:
    """Return the one effect due now, or when to evaluate the array again if nothing changes."""
    array = snapshot.array
    if array.deleting:
        return ArrayDecision()
    if array.state.phase in ENDED_ARRAY_PHASES:
        return _decide_ended(snapshot, now)
    if snapshot.cancelled_with and not array.cancel:
        return ArrayDecision(CancelArray(CancelCascades(snapshot.cancelled_with)))
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
    write = None if unread else _write_of(snapshot, next_state(snapshot, now))
    written_at = snapshot.written_at
    interval = LARGE_WRITE_INTERVAL if snapshot.array.large else WRITE_INTERVAL
    if written_at is None or written_at + interval <= now.monotonic:
        if unread:
            return ArrayDecision(ReadChunks(unread))
        if write:
            return ArrayDecision(write)
    is_due = written_at is not None and bool(unread or write)
    times = [(written_at or 0.0) + interval] if is_due else []
    if snapshot.recheck_at is not None:
        times.append(snapshot.recheck_at)
    return ArrayDecision(_see_to_chunks(snapshot), min(times, default=None))


def _decide_ended(snapshot: ArraySnapshot, now: Now) -> ArrayDecision:
    array = snapshot.array
    if array.state.phase is ArrayPhase.FAILED and array.redrive > array.state.redrives:
        return ArrayDecision(_write_of(snapshot, redrive(array), "redrive"))
    if snapshot.unlisted:
        return ArrayDecision(_delete_unlisted(snapshot))
    ttl, completed = array.ttl_seconds_after_finished, array.state.completion_time
    if ttl is None or completed is None:
        return ArrayDecision()
    if snapshot.has_open_parent or snapshot.is_needed:
        return ArrayDecision(None, now.monotonic + 60.0)
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


def next_state(snapshot: ArraySnapshot, now: Now) -> ArrayState:
    """Return the next state; who reserves new chunks makes itself their writer."""
    before = snapshot.array.state
    state = advance(snapshot, now.timestamp)
    progress = measure(snapshot.samples, snapshot.array, state, now)
    state = replace(
        state,
        items_per_minute=progress.items_per_minute,
        expected_end_time=progress.expected_end_time,
    )
    return state if state.generation == before.generation else _as_writer(snapshot, state)


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
    starts = state.has_started and not snapshot.array.state.has_started
    fails = state.reason is ArrayReason.DEPENDENCY_FAILED
    precondition = snapshot.start_precondition if starts or fails else None
    return WriteArrayStatus(policy, state, fields, "claims" in fields, precondition)


def _see_to_chunks(snapshot: ArraySnapshot) -> ArrayEffect | None:
    """Cancel, suspend or resume chunks as the array says, and delete those that are counted."""
    chunks, fields = due_control(snapshot)
    return ControlChunks(chunks, fields) if chunks else _delete_unlisted(snapshot)


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
