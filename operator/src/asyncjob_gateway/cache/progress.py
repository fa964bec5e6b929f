"""Up to which version the watch has shown everything."""

import asyncio


class ObservedVersion:
    """The newest version seen, for those who wait for one of their own writes."""

    def __init__(self) -> None:
        self.version = 0
        self._changed: asyncio.Event | None = None

    def advance(self, version: int) -> None:
        """Note that all up to this version has been seen."""
        self.version = max(self.version, version)
        self.wake()

    def wake(self) -> None:
        """Have all who wait look again."""
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()

    async def wait_for_change(self) -> None:
        """Wait until there is something to look at."""
        if self._changed is None:
            self._changed = asyncio.Event()
        await self._changed.wait()
