"""Single requests to a store, off the event loop and within a time limit."""

from collections.abc import Callable
from typing import Final, TypeVar

from asyncjob.offload import Address, AllowList, Store, StoreUnavailableError
from asyncjob_worker.offload.config import OffloadSettings
from asyncjob_worker.offload.threads import BoundedThreads

T = TypeVar("T")

SPARE_THREADS: Final = 4
"""Besides one per slot: for requests that hang and that nobody waits for any more."""

_MARGIN_SECONDS: Final = 1.0
"""Drivers that can be interrupted end by themselves a little earlier."""


class ObjectStoreClient:
    """The requests of one worker process; `threads` is the most that are under way."""

    def __init__(self, store: Store, *, threads: int, timeout: float) -> None:
        self._store = store
        self._threads = BoundedThreads(threads)
        self._timeout = timeout

    @classmethod
    def from_settings(cls, settings: OffloadSettings, slots: int) -> "ObjectStoreClient":
        """Return the transfers of a worker process with so many slots."""
        store, timeout = settings.store(), settings.timeout
        return cls(store, threads=slots + SPARE_THREADS, timeout=timeout)

    async def read(self, address: Address, allowed: AllowList) -> bytes:
        """Return an object's content; raises OffloadError."""
        roots = allowed.roots(address)
        return await self._run_in_thread("read", address, lambda: self._store.read(address, roots))

    async def write(self, address: Address, data: bytes, root: Address) -> None:
        """Write an object; raises OffloadError."""
        await self._run_in_thread("write", address, lambda: self._store.write(address, data, root))

    async def _run_in_thread(self, verb: str, address: Address, call: Callable[[], T]) -> T:
        try:
            return await self._threads.run(call, seconds=self._timeout + _MARGIN_SECONDS)
        except TimeoutError as error:
            why = str(error) or "the store did not answer in time"
            raise StoreUnavailableError(f"cannot {verb} {address}: {why}") from error
