"""Jobs something is due for, in the order they came up; each is there once, and worked on once."""

import asyncio


class Todo:
    """A set with an order. A job being worked on is not handed out again until it is done."""

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}
        self._busy: set[str] = set()
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: str) -> None:
        """Put a job on the list, unless it is being worked on."""
        if key not in self._busy:
            self._keys[key] = None
            self._filled.set()

    def discard(self, key: str) -> None:
        """Take a job off the list."""
        self._keys.pop(key, None)

    async def take(self) -> str:
        """Wait for a job and take it; it is busy until `done`."""
        while not self._keys:
            self._filled.clear()
            await self._filled.wait()
        key = next(iter(self._keys))
        del self._keys[key]
        self._busy.add(key)
        return key

    def done(self, key: str) -> None:
        """Take that the work on the job has ended, however."""
        self._busy.discard(key)
