"""What something is due for, in the order it came up; each is there once, and worked on once."""

import asyncio


class Todo:
    """A set with an order. One being worked on is not handed out again until it is done.

    What is added while it is worked on is forgotten, because who works looks at it once more
    afterwards; or, with `remember`, it is on the list again then.
    """

    def __init__(self, *, remember: bool = False) -> None:
        self._remember = remember
        self._keys: dict[str, None] = {}
        self._busy: set[str] = set()
        self._once_more: set[str] = set()
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: str) -> None:
        """Put it on the list, unless it is being worked on."""
        if key not in self._busy:
            self._keys[key] = None
            self._filled.set()
        elif self._remember:
            self._once_more.add(key)

    def discard(self, key: str) -> None:
        """Take it off the list."""
        self._keys.pop(key, None)

    async def take(self) -> str:
        """Wait for the first and take it; it is busy until `done`."""
        while not self._keys:
            self._filled.clear()
            await self._filled.wait()
        key = next(iter(self._keys))
        del self._keys[key]
        self._busy.add(key)
        return key

    def done(self, key: str) -> None:
        """Take that the work on it has ended, however."""
        self._busy.discard(key)
        if key in self._once_more:
            self._once_more.discard(key)
            self.add(key)
