"""Answers of the cluster, remembered for some seconds. Bounded, and each asked for only once."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

SIZE: Final = 10_000


class Memory(Generic[K, V]):
    """Keeps each answer for so many seconds. `clock` gives seconds and never goes back.

    Errors are not remembered; all who wait for the same answer get them.
    """

    def __init__(self, seconds: float, clock: Callable[[], float], size: int = SIZE) -> None:
        self._seconds = seconds
        self._clock = clock
        self._size = size
        self._known: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._asking: dict[K, asyncio.Task[V]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def known(self, key: K) -> bool:
        """Return whether the answer is remembered, or on its way."""
        found = self._known.get(key)
        return key in self._asking or bool(found and found[0] > self._clock())

    async def get(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Return the answer; `ask` is called where it is not known."""
        found = self._known.get(key)
        if found and found[0] > self._clock():
            return found[1]
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._learn(key, ask))
            task.add_done_callback(lambda done: self._answered(key, done))
        return await asyncio.shield(task)

    def _answered(self, key: K, task: asyncio.Task[V]) -> None:
        del self._asking[key]
        if not task.cancelled():
            task.exception()  # whoever waited may be gone; nobody else need hear of it

    async def _learn(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        value = await ask()
        self._known[key] = (self._clock() + self._seconds, value)
        self._known.move_to_end(key)
        while len(self._known) > self._size:
            self._known.popitem(last=False)
        return value
