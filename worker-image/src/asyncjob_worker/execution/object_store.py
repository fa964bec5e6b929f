"""Single requests to an object store, each in a thread of its own and within a time limit.

The threads are daemons: Python waits for the threads of a pool before it exits, so that a store
that hangs would keep a worker from ending.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from asyncjob.offload import (
    Address,
    AddressError,
    AllowList,
    Store,
    StoreRefusedError,
    StoreUnavailableError,
)
from asyncjob.offload.store import ObjectStat
from asyncjob_worker.settings import OffloadSettings

T = TypeVar("T")

SPARE_THREADS: Final = 4
"""Threads beside one per slot: for requests that hang and that nobody waits for any more."""

_MARGIN_SECONDS: Final = 1.0
"""How much longer than the store's own timeout to wait: drivers that have one end by themselves."""


class ObjectStoreClient:
    """The store client of one worker process, with at most `threads` requests under way."""

    def __init__(self, store: Store, *, threads: int, timeout: float) -> None:
        self._store = store
        self._threads = BoundedThreads(threads)
        self._timeout = timeout

    @classmethod
    def from_settings(cls, settings: OffloadSettings, slots: int) -> "ObjectStoreClient":
        """Return the client of a worker process with this number of slots."""
        store, timeout = settings.store(), settings.timeout
        return cls(store, threads=slots + SPARE_THREADS, timeout=timeout)

    async def read(self, address: Address, allowed: AllowList) -> bytes:
        """Return an object's content; raises OffloadError."""
        roots = allowed.roots(address)
        return await self._run_in_thread("read", address, lambda: self._store.read(address, roots))

    async def stat(self, address: Address, allowed: AllowList) -> ObjectStat:
        """Return size and version of an object; raises OffloadError."""
        roots = allowed.roots(address)
        return await self._run_in_thread("read", address, lambda: self._store.stat(address, roots))

    async def read_part(self, address: Address, allowed: AllowList, start: int, end: int) -> bytes:
        """Return the bytes from `start` to before `end` of an object; raises OffloadError."""
        roots = allowed.roots(address)
        return await self._run_in_thread(
            "read", address, lambda: self._store.read_part(address, roots, start, end)
        )

    async def write(self, address: Address, data: bytes, root: Address) -> None:
        """Write an object; raises OffloadError."""
        await self._run_in_thread("write", address, lambda: self._store.write(address, data, root))

    async def _run_in_thread(self, verb: str, address: Address, call: Callable[[], T]) -> T:
        try:
            return await self._threads.run(call, seconds=self._timeout + _MARGIN_SECONDS)
        except TimeoutError as error:
            why = str(error) or "the store did not answer in time"
            raise StoreUnavailableError(f"cannot {verb} {address}: {why}") from error


class BoundedThreads:
    """Runs up to `count` blocking calls at a time, each in a thread of its own.

    A call that nobody waits for any more counts until it returns.
    """

    def __init__(self, count: int) -> None:
        self._free = threading.Semaphore(count)

    async def run(self, call: Callable[[], T], *, seconds: float) -> T:
        """Run the call in a thread and return its result.

        Raises TimeoutError after `seconds`, though the call itself goes on, and at once if too many
        calls hang.
        """
        if not self._free.acquire(blocking=False):
            raise TimeoutError("too many requests to the store hang")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        thread_call = _ThreadCall(call, future, self._free, loop)
        threading.Thread(target=thread_call.run, name="store", daemon=True).start()
        async with asyncio.timeout(seconds):
            return await future


class _ThreadCall:
    def __init__(
        self,
        call: Callable[[], T],
        answer: "asyncio.Future[T]",
        free: threading.Semaphore,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._call = call
        self._answer: asyncio.Future[Any] = answer
        self._free = free
        self._loop = loop

    def run(self) -> None:
        """Make the call, in the thread, and pass its result to the event loop."""
        try:
            result, error = self._call(), None
        except Exception as raised:  # noqa: BLE001  # raised where the call is awaited
            result, error = None, raised
        finally:
            self._free.release()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver, result, error)

    def _deliver(self, result: object, error: Exception | None) -> None:
        if self._answer.done():
            return
        if error is not None:
            self._answer.set_exception(error)
        else:
            self._answer.set_result(result)


@dataclass(frozen=True, slots=True)
class AllowedFolder:
    """Writes objects into a folder that lies in `root`."""

    object_store: ObjectStoreClient
    address: Address
    root: Address

    async def write(self, folder: str, name: str, data: bytes) -> None:
        """Write an object whole, in place of one of that name; raises OffloadError."""
        await self.object_store.write(self.address.join(folder, name), data, self.root)


class AllowedFiles:
    """Reads for one job, in parts, what jobs of its namespace may read.

    Writes results of items to where results of its namespace go.
    """

    def __init__(
        self, object_store: ObjectStoreClient, offload: OffloadSettings, namespace: str
    ) -> None:
        self._object_store = object_store
        self._offload = offload
        self._namespace = namespace

    async def stat(self, uri: str) -> ObjectStat:
        """Return size and version of a file; raises OffloadError."""
        allowed = self._offload.allowed(self._namespace)
        return await self._object_store.stat(Address.parse(uri), allowed)

    async def read(self, uri: str, start: int, end: int) -> bytes:
        """Return the bytes from `start` to before `end` of a file; raises OffloadError."""
        allowed = self._offload.allowed(self._namespace)
        return await self._object_store.read_part(Address.parse(uri), allowed, start, end)

    def results(self, uri: str) -> AllowedFolder:
        """Return a folder for results; raises OffloadError where they may not go there."""
        root = self._offload.results(self._namespace)
        if root is None:
            raise StoreRefusedError(
                "this worker has no store for results: start it with --offload-url"
            )
        address = Address.folder(uri)
        if not address.is_below(root):
            raise AddressError(f"{address} is not below where results go: {root}/")
        return AllowedFolder(self._object_store, address, root)
