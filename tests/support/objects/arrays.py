"""Builders of arrays, their chunks and snapshots for tests of the decisions about arrays.

Unless a test says otherwise an array has 100 items, in chunks of ten, three of which are under way
at most; it runs, and `OPERATOR` is its writer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from asyncjob.lifecycle.arrays.chunks import ChunkReport, ItemError
from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.lifecycle.arrays.observed import ChunkJob, ChunkOutcome
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.lifecycle.arrays.state import (
    ArrayState,
    OpenChunkEntry,
    read_array,
    state_to_json,
)
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob_operator.core.arrays.snapshot import (
    ArraySnapshot,
)
from support.objects.snapshots import stamp
from support.parts.array_world import raw_array

OPERATOR = "operator-0"

RUNNING = ArrayState(
    phase=ArrayPhase.RUNNING, total=100, writer=OPERATOR, claims=1, start_time=stamp(0)
)
"""The state of an array that runs and has not cut a chunk."""


def ranges(notation: str) -> ItemRanges:
    """Return the items that interval notation says."""
    return ItemRanges.parse(notation)


def scattered(count: int, start: int = 0) -> ItemRanges:
    """Return so many items of which no two are neighbours: each takes a range."""
    return ItemRanges.of(range(start, start + 2 * count, 2))


def entry(
    number: int, items: str = "", *, uid: str | None = None, suspect: bool = False
) -> OpenChunkEntry:
    """Return the entry of the chunk of this number, ten items long, which is known to exist."""
    first = 10 * (number - 1)
    notation = items or f"{first}-{first + 9}"
    known = f"uid-{number}" if uid is None else uid
    return OpenChunkEntry(f"thumbs-{number}", ranges(notation), number, known, suspect)


def under_way(*entries: OpenChunkEntry, **changes: Any) -> ArrayState:
    """Return the state of an array with these chunks under way, and no other cut so far."""
    last = max((one.items.ranges[-1][1] for one in entries if one.items), default=-1)
    state = replace(RUNNING, open=entries, next=last + 1, generation=len(entries))
    return replace(state, **changes)


def chunk(number: int, phase: Phase = Phase.RUNNING, **changes: Any) -> ChunkJob:
    """Return what is known of the job of the chunk of this number."""
    job = ChunkJob(
        namespace="ns",
        name=f"thumbs-{number}",
        uid=f"uid-{number}",
        array="thumbs",
        phase=phase,
        finished=phase in FINISHED_PHASES,
        cancel_requested=False,
        suspended=False,
        deleting=False,
    )
    return replace(job, **changes)


def outcome(
    number: int = 1,
    phase: Phase = Phase.SUCCEEDED,
    *,
    done: str = "",
    failed: str = "",
    **said: Any,
) -> ChunkOutcome:
    """Return what a live read has shown of the chunk of this number."""
    errors = tuple(ItemError(item, "ValueError", "Internal", "no") for item in ranges(failed))
    report = ChunkReport(ranges(done), ranges(failed), errors)
    finished = phase in FINISHED_PHASES
    quiet = {"reason": "", "error_type": "", "error_category": "", "message": ""}
    return ChunkOutcome(f"uid-{number}", finished, phase, report=report, **{**quiet, **said})


def stored(state: ArrayState = RUNNING, **spec: Any) -> dict[str, Any]:
    """Return an array in this state as the API server stores it."""
    given = {"items": {"count": 100}, "chunkSize": 10, "parallelism": 3, **spec}
    array = raw_array(**{name: value for name, value in given.items() if value is not None})
    status = {name: value for name, value in state_to_json(state).items() if value is not None}
    return {**array, "status": status}


def snapshot(
    state: ArrayState = RUNNING,
    *chunks: ChunkJob,
    spec: Mapping[str, Any] | None = None,
    outcomes: Iterable[ChunkOutcome] = (),
    **known: Any,
) -> ArraySnapshot:
    """Return what a decision depends on: the array in this state, and these jobs of its chunks."""
    read = {f"thumbs-{one.uid.removeprefix('uid-')}": one for one in outcomes}
    view = read_array(stored(state, **(spec or {})))
    return ArraySnapshot(
        array=view,
        chunks={one.name: one for one in chunks},
        identity=known.pop("identity", OPERATOR),
        writer_since=known.pop("writer_since", 0.0),
        outcomes=read | known.pop("gone", {}),
        **known,
    )
