"""How many items a chunk gets where the array does not say: as many as take about half a minute.

The size follows from how long the chunks took that one write counts, and is kept in the status by
that same write. A chunk shows how long an item takes, so a size that was wrong is put right without
waiting for the chunks that are still under way.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Final

from asyncjob.lifecycle.arrays.observed import ChunkOutcome
from asyncjob.lifecycle.arrays.state import ArrayView, OpenChunkEntry
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.policy import Category

TARGET_SECONDS: Final = 30.0
"""How long a chunk is to take. Its dozen writes are a third of a write a second for each slot; what
has to stop or to take turns waits no longer than this."""

TARGET_SHARE: Final = 0.25
"""Share of the time limit of a chunk that it is to take at most: times of items vary."""

INITIAL_SIZE: Final = 10
"""Size of the first chunks. Items of three minutes each are still within the built-in time limit of
a chunk, and those of a millisecond reach the maximum in six writes."""

MAX_SIZE: Final = 10_000

STEP: Final = 4
"""By how much one write enlarges the size, or makes it smaller, at most."""

LAST_SHARE: Final = 4
"""The last chunks, shared out among all that may be under way, are at most this much smaller: below
that the writes weigh more than the wait for the last one."""

CHUNK_BYTES: Final = 64 * 1024
"""About how many bytes the items of a chunk have, where they stand in the array: each heartbeat of
a chunk stores them again."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """What a chunk that has ended shows: in how many seconds it has run how many items."""

    seconds: float
    items: int
    size: int
    """How many items it was given."""

    limit: int | None
    """Time limit of an attempt, in seconds."""


def next_size(size: int, counted: Iterable[tuple[OpenChunkEntry, ChunkOutcome]]) -> int:
    """Return the size of the next chunks, after these have been counted.

    Half the way, on the scale of ratios, so that one write's chance is evened out by the next.
    """
    samples = [one for one in (_sample(*chunk) for chunk in counted) if one is not None]
    if not samples:
        return size
    each = sum(one.seconds for one in samples) / sum(one.items for one in samples)
    limits = [one.limit * TARGET_SHARE for one in samples if one.limit is not None]
    target = min([TARGET_SECONDS, *limits])
    step = min(max(sqrt(target / max(each * size, 0.001)), 1 / STEP), STEP)
    # What small chunks have shown says nothing about ones that are very much larger.
    most = min(max(size, STEP * max(one.size for one in samples)), MAX_SIZE)
    return max(min(round(size * step), most), 1)


def _sample(entry: OpenChunkEntry, outcome: ChunkOutcome) -> _Sample | None:
    """Return how long a chunk's items have taken, None if it does not show that.

    Of a chunk that was tried more than once only the last attempt's time is known, and not how many
    items that attempt has run: it counts only where even all of them would have taken too long.
    """
    run, size = outcome.run, len(entry.items)
    if run is None or entry.suspect or not size:
        return None
    if outcome.phase is Phase.DEAD_LETTER and outcome.error_category == Category.TIMEOUT:
        done = len((outcome.report.done | outcome.report.failed) & entry.items)
        return _Sample(run.seconds * run.attempts, max(done, 1), size, run.limit)
    if outcome.phase is not Phase.SUCCEEDED:
        return None
    if run.attempts == 1 or run.seconds > TARGET_SECONDS:
        return _Sample(run.seconds, size, size, run.limit)
    return None


def bounded_size(size: int, left: int, array: ArrayView) -> int:
    """Return the size of the chunks that are cut now; `left` items are in no chunk yet."""
    share = max(-(-left // array.parallelism), size // LAST_SHARE)
    room = CHUNK_BYTES * array.count // array.inline_bytes if array.inline_bytes else size
    return max(min(size, share, room), 1)
