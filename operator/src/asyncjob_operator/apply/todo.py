"""What something is due for, lane by lane; each is there once, and worked on once."""

import asyncio
from collections import OrderedDict


class Todo:
    """Lanes take turns, and within a lane who came first is first.

    So a thousand of one kind, or of one tenant, hold up another's first by one turn. One being
    worked on is not handed out again until it is done. What is added while it is worked on is
    forgotten, because who works looks at it once more afterwards; or, with `remember`, it is on the
    list again then.
    """

    def __init__(self, *, remember: bool = False) -> None:
        self._remember = remember
        self._lanes: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()
        self._lane_of: dict[str, str] = {}
        self._busy: dict[str, str] = {}
        self._once_more: dict[str, str] = {}
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        return len(self._lane_of)

    def add(self, key: str, lane: str = "") -> None:
        """Put it on the list, unless it is being worked on; who is on it already keeps its lane."""
        if key in self._busy:
            if self._remember:
                self._once_more[key] = lane
        elif key not in self._lane_of:
            self._lane_of[key] = lane
            self._lanes.setdefault(lane, OrderedDict())[key] = None
            self._filled.set()

    def discard(self, key: str) -> None:
        """Take it off the list."""
        lane = self._lane_of.pop(key, None)
        if lane is not None:
            del self._lanes[lane][key]
            if not self._lanes[lane]:
                del self._lanes[lane]

    async def take(self) -> str:
        """Wait for the first of the lane whose turn it is, and take it; it is busy until `done`."""
        while not self._lanes:
            self._filled.clear()
            await self._filled.wait()
        lane, keys = self._lanes.popitem(last=False)
        key, _ = keys.popitem(last=False)
        del self._lane_of[key]
        if keys:
            self._lanes[lane] = keys
        self._busy[key] = lane
        return key

    def done(self, key: str) -> None:
        """Take that the work on it has ended, however."""
        self._busy.pop(key, None)
        if key in self._once_more:
            self.add(key, self._once_more.pop(key))

    def put_back(self, key: str) -> None:
        """Take that nothing was done: it is on the list again."""
        lane = self._busy.get(key, "")
        self.done(key)
        self.add(key, lane)
