"""What something is due for, lane by lane; each is there once, and worked on once."""

import asyncio
import sys
from collections import Counter, OrderedDict


class WorkQueue:
    """Lanes take turns, and within a lane who came first is first.

    So a thousand of one kind, or of one tenant, hold up another's first by one turn. One being
    worked on is not handed out again until it is done. What is added while it is worked on is
    forgotten, because who works looks at it once more afterwards; or, with `requeue_dirty`, it is
    on the list again then. Of one lane at most `max_per_lane` are worked on at once, so that the
    others find somebody free, and an API server that is not busy with that lane alone.
    """

    def __init__(self, *, requeue_dirty: bool = False, max_per_lane: int = sys.maxsize) -> None:
        self._requeue_dirty = requeue_dirty
        self._max_per_lane = max_per_lane
        self._lanes: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()
        self._lane_of: dict[str, str] = {}
        self._processing: dict[str, str] = {}
        self._processing_in_lane: Counter[str] = Counter()
        self._dirty: dict[str, str] = {}
        self._available = asyncio.Event()

    def __len__(self) -> int:
        return len(self._lane_of)

    def add(self, key: str, lane: str = "") -> None:
        """Put it on the list, unless it is being worked on; who is on it already keeps its lane."""
        if key in self._processing:
            if self._requeue_dirty:
                self._dirty[key] = lane
        elif key not in self._lane_of:
            self._lane_of[key] = lane
            self._lanes.setdefault(lane, OrderedDict())[key] = None
            self._available.set()

    def discard(self, key: str) -> None:
        """Take it off the list."""
        lane = self._lane_of.pop(key, None)
        if lane is not None:
            del self._lanes[lane][key]
            if not self._lanes[lane]:
                del self._lanes[lane]

    async def get(self) -> str:
        """Wait for the first of the lane whose turn it is, and take it; it is busy until `done`."""
        while (lane := self._next_lane()) is None:
            self._available.clear()
            await self._available.wait()
        keys = self._lanes.pop(lane)
        key, _ = keys.popitem(last=False)
        del self._lane_of[key]
        if keys:
            self._lanes[lane] = keys
        self._processing[key] = lane
        self._processing_in_lane[lane] += 1
        return key

    def done(self, key: str) -> None:
        """Take that the work on it has ended, however."""
        lane = self._processing.pop(key, None)
        if lane is not None:
            self._processing_in_lane[lane] -= 1
            if not self._processing_in_lane[lane]:
                del self._processing_in_lane[lane]
            self._available.set()
        if key in self._dirty:
            self.add(key, self._dirty.pop(key))

    def requeue(self, key: str) -> None:
        """Take that nothing was done: it is on the list again."""
        lane = self._processing.get(key, "")
        self.done(key)
        self.add(key, lane)

    def _next_lane(self) -> str | None:
        most = self._max_per_lane
        return next((lane for lane in self._lanes if self._processing_in_lane[lane] < most), None)
