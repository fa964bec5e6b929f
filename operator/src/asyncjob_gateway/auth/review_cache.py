"""Answers of TokenReviews and SubjectAccessReviews, remembered for some seconds.

The cache is bounded, and concurrent requests for one answer share one review.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MAX_ENTRIES: Final = 10_000
"""Answers that are kept, the newest. It bounds the memory that callers can fill with ever other
tokens; what is dropped is asked for again."""


class ReviewCache(Generic[K, V]):
    """Keeps each answer for `ttl` seconds. `clock` gives seconds and never goes back.

    Errors are not remembered; all who wait for the same answer get them.
    """

    def __init__(
        self, ttl: float, clock: Callable[[], float], max_entries: int = MAX_ENTRIES
    ) -> None:
        self._ttl = ttl
        self._clock = clock
        self._max_entries = max_entries
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._in_flight: dict[K, asyncio.Task[V]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def is_cached(self, key: K) -> bool:
        """Return whether the answer is remembered, or on its way."""
        found = self._entries.get(key)
        return key in self._in_flight or bool(found and found[0] > self._clock())

    async def get(self, key: K, fetch: Callable[[], Awaitable[V]]) -> V:
        """Return the answer; `fetch` is called where it is not known."""
        found = self._entries.get(key)
        if found and found[0] > self._clock():
            return found[1]
        task = self._in_flight.get(key)
        if task is None:
            task = self._in_flight[key] = asyncio.create_task(self._fetch(key, fetch))
            task.add_done_callback(lambda done: self._on_fetched(key, done))
        return await asyncio.shield(task)

    def _on_fetched(self, key: K, task: asyncio.Task[V]) -> None:
        del self._in_flight[key]
        if not task.cancelled():
            task.exception()  # its callers may be gone; nobody else needs to know

    async def _fetch(self, key: K, fetch: Callable[[], Awaitable[V]]) -> V:
        value = await fetch()
        self._entries[key] = (self._clock() + self._ttl, value)
        self._entries.move_to_end(key)
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)
        return value
