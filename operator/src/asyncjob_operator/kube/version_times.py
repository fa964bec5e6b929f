"""By when the API server had given out which resourceVersion: when a job was written at the latest.

A job that nobody applies may have no managedFields, and so no time that the API server gave its
last write. Its resourceVersion tells the same, if less exactly: it comes from the API server, only
grows, and no writer can choose it. The leader notes every minute which version is the newest, and
keeps these samples in the election's Lease. What has at most the version of a sample was written
before it. What is not known so counts as written now: a job may go later for it, never earlier.
"""

import math
import re
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Final

MAX_SAMPLES: Final = 64
"""Less than 2 KiB of text. Thinned out by age, they tell a job's age to about a third of it."""

_SAMPLES: Final = re.compile(r"[0-9]{1,19}@[0-9]{1,11}(?: [0-9]{1,19}@[0-9]{1,11})*")


@dataclass(frozen=True, slots=True)
class VersionSample:
    """`version` had been given out by `at`, in whole epoch seconds."""

    version: int
    at: int


class VersionTimes:
    """The samples, oldest first: both versions and times increase."""

    def __init__(self) -> None:
        self._samples: list[VersionSample] = []

    def sample(self, version: str, at: float) -> None:
        """Note that `version` is the newest at this time, in epoch seconds.

        Samples of later versions are dropped, as the store was restored from a backup, and so are
        those of later times, as a clock was wrong.
        """
        if not version.isdecimal():
            return
        newest = VersionSample(int(version), math.ceil(at))
        self._samples = [
            one for one in self._samples if one.version <= newest.version and one.at <= newest.at
        ]
        last = self._samples[-1] if self._samples else None
        if last and (last.version == newest.version or last.at == newest.at):
            return
        self._samples.append(newest)
        if len(self._samples) > MAX_SAMPLES:
            self._thin_out(newest.at)

    def written_by(self, version: str, now: float) -> float:
        """Return when what has this version was written at the latest: `now` if no sample says.

        Both are epoch seconds.
        """
        if not version.isdecimal():
            return now
        index = bisect_left(self._samples, int(version), key=attrgetter("version"))
        return min(self._samples[index].at, now) if index < len(self._samples) else now

    def restore(self, text: str, since: float) -> None:
        """Take the samples of a text, and keep no others; none of a text that is no list of them.

        Those from before `since`, in epoch seconds, are left out: they were taken before there was
        what they are kept in, so of another cluster's versions.
        """
        self._samples = [one for one in read_samples(text) if one.at >= since]

    def text(self) -> str:
        """Return the samples as they are kept."""
        return " ".join(f"{one.version}@{one.at}" for one in self._samples)

    def _thin_out(self, now: int) -> None:
        """Drop the sample without which the least is lost, compared with its age."""
        inner = range(1, len(self._samples) - 1)
        del self._samples[min(inner, key=lambda index: self._share_lost(index, now))]

    def _share_lost(self, index: int, now: int) -> float:
        before, after = self._samples[index - 1], self._samples[index + 1]
        return (after.at - before.at) / (now - before.at)


def read_samples(text: str) -> list[VersionSample]:
    """Return the samples of a text, none if it is no list of increasing versions and times."""
    if not _SAMPLES.fullmatch(text):
        return []
    pairs = (pair.split("@") for pair in text.split(" "))
    samples = [VersionSample(int(version), int(at)) for version, at in pairs][-MAX_SAMPLES:]
    for one, after in pairwise(samples):
        if one.version >= after.version or one.at >= after.at:
            return []
    return samples
