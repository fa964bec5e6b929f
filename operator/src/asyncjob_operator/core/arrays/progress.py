"""How fast an array goes, and when it ends if it goes on so: measured over its last minute.

Only the operator that reads an array's counts as they change can tell: an average since the start
would count the hours that the array was suspended, or had failed, as if items had run in them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES, ArrayReason
from asyncjob.lifecycle.arrays.skipped_items import count_skipped
from asyncjob.lifecycle.arrays.state import ArrayState, ArrayView
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob_operator.core.now import MAX_EPOCH, Now

WINDOW_SECONDS: Final = 60.0
"""Over how long the rate is measured; longer where fewer chunks end."""

SAMPLE_SECONDS: Final = 5.0
"""Between two counts that are kept: so there are at most a dozen or two for an array."""

REST_SECONDS: Final = 5.0
"""Time in which no chunk runs, such as while the queue is paused or has no worker, does not count
for the rate if it is at least this long."""

MIN_SECONDS: Final = 1.0
"""A shorter time tells nothing."""


@dataclass(frozen=True, slots=True)
class CountSample:
    """How many items had been run at a time of this replica's monotonic clock."""

    at: float
    count: int


@dataclass(frozen=True, slots=True)
class Progress:
    """What the status says of the rate, as it is stored; None where it cannot be told."""

    items_per_minute: int | None = None
    expected_end_time: str | None = None


def add_sample(samples: Sequence[CountSample], array: ArrayView, now: float) -> list[CountSample]:
    """Return the samples that are kept once this version of the array has been seen.

    There are none of an array that stands still because it was told to, or whose file is still
    being counted; one that starts again has that of now.
    """
    if is_held(array) or not array.state.has_started or not array.total:
        return []
    count = items_run(array, array.state)
    if not samples or count < samples[-1].count:
        return [CountSample(now, count)]
    if now < samples[-1].at + SAMPLE_SECONDS or count == samples[-1].count:
        return list(samples)
    older = [one for one in samples if one.at <= now - WINDOW_SECONDS]
    newer = [one for one in samples if one.at > now - WINDOW_SECONDS]
    return [*older[-1:], *newer, CountSample(now, count)]


def is_held(array: ArrayView) -> bool:
    """Return whether an array stands still because it has ended, or was told to."""
    return array.suspend or array.cancel or array.state.phase in ENDED_ARRAY_PHASES


def items_run(array: ArrayView, state: ArrayState) -> int:
    """Return how many items are done or have failed, without those that were skipped."""
    return state.succeeded + state.failed - count_skipped(array.skip, 0, state.next)


def measure(
    samples: Sequence[CountSample], array: ArrayView, state: ArrayState, now: Now
) -> Progress:
    """Return the rate with which `state` has been reached, and when the rest is done by it."""
    stands = state.phase in ENDED_ARRAY_PHASES or state.reason is ArrayReason.NO_WORKER
    if is_held(array) or stands:
        return Progress()
    before = Progress(array.state.items_per_minute, array.state.expected_end_time)
    count = items_run(array, state)
    if count == items_run(array, array.state) or not samples:
        return before
    first = next(
        (one for one in reversed(samples) if one.at <= now.monotonic - WINDOW_SECONDS), samples[0]
    )
    seconds = now.monotonic - first.at
    if seconds < MIN_SECONDS or count <= first.count:
        return before
    rate = (count - first.count) / seconds
    left = state.total - count - count_skipped(array.skip, 0, state.total)
    end = min(now.wall + left / rate, MAX_EPOCH)
    # Less than one in two minutes has no number that would be true.
    a_minute = round(rate * 60) or None
    return Progress(a_minute, format_timestamp(datetime.fromtimestamp(round(end), UTC)))
