"""How many items a chunk gets where the array does not say: as many as take about half a minute.

The size follows from how long the chunks took that one write counts, and is kept in the status by
that same write. A chunk shows how long an item takes, so a size that was wrong is put right without
waiting for the chunks that are still under way.
"""

from collections.abc import Iterable
from math import sqrt
from typing import Final

from asyncjob.lifecycle.arrays.observed import ChunkOutcome
from asyncjob.lifecycle.arrays.state import OpenChunkEntry
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


def next_size(size: int, counted: Iterable[tuple[OpenChunkEntry, ChunkOutcome]]) -> int:
    """Return the size of the next chunks, after these have been counted.

    Half the way, on the scale of ratios, so that one write's chance is evened out by the next.
    """
    seconds, items, largest, target = 0.0, 0, 0, TARGET_SECONDS
    for entry, outcome in counted:
        sample = _seconds_and_items(entry, outcome)
        if sample is None:
            continue
        seconds += sample[0]
        items += sample[1]
        largest = max(largest, len(entry.items))
        if outcome.run is not None and outcome.run.limit is not None:
            target = min(target, outcome.run.limit * TARGET_SHARE)
    if not items:
        return size
    took = max(seconds * size / items, 0.001)
    step = min(max(sqrt(target / took), 1 / STEP), STEP)
    # What small chunks have shown says nothing about ones that are very much larger.
    most = min(max(size, STEP * largest), MAX_SIZE)
    return max(min(round(size * step), most), 1)


def _seconds_and_items(entry: OpenChunkEntry, outcome: ChunkOutcome) -> tuple[float, int] | None:
    """Return in how many seconds a chunk has run how many items, None if it does not show that.

    Of a chunk that was tried more than once only the last attempt's time is known, and not how many
    items that attempt has run: it counts only where even all of them would have taken too long.
    """
    run = outcome.run
    if run is None or entry.suspect or not entry.items:
        return None
    if outcome.phase is Phase.DEAD_LETTER and outcome.error_category == Category.TIMEOUT:
        done = len((outcome.report.done | outcome.report.failed) & entry.items)
        return run.seconds * run.attempts, max(done, 1)
    if outcome.phase is not Phase.SUCCEEDED:
        return None
    if run.attempts == 1 or run.seconds > TARGET_SECONDS:
        return run.seconds, len(entry.items)
    return None


def bounded_size(size: int, left: int, parallelism: int, item_bytes: float) -> int:
    """Return the size of the chunks that are cut now.

    `left` items are in no chunk yet; `item_bytes` is what one takes in the payload, on average.
    """
    share = max(-(-left // parallelism), size // LAST_SHARE)
    room = int(CHUNK_BYTES / item_bytes) if item_bytes else MAX_SIZE
    return max(min(size, share, room), 1)
