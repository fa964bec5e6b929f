"""Reads and writes whole objects through fsspec, in the calling thread.

Sizes are in bytes, times in seconds. What fsspec's drivers raise leaves here as OffloadError.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from asyncjob.offload.addresses import Address
from asyncjob.offload.confinement import resolve_within
from asyncjob.offload.drivers import Driver, open_driver
from asyncjob.offload.errors import ObjectTooLargeError, StoreRefusedError
from asyncjob.offload.failures import translate_driver_errors
from asyncjob.offload.whole_files import write_file_atomically

MAX_OBJECT_BYTES: Final = 64 * 1024 * 1024
"""Larger objects are better read and written by the handler itself, in parts."""

REQUEST_TIMEOUT_SECONDS: Final = 60.0

DriverOptions = Mapping[str, Mapping[str, Any]]
"""By protocol: what fsspec's driver is made with, such as `endpoint_url`."""


class Store:
    """All stores that one process uses; any thread may call it.

    `timeout` bounds each request of drivers that can be interrupted (S3, HTTP and all others that
    are asynchronous inside).
    """

    def __init__(
        self,
        options: DriverOptions | None = None,
        *,
        limit: int = MAX_OBJECT_BYTES,
        timeout: float = REQUEST_TIMEOUT_SECONDS,
    ) -> None:
        self.limit = limit
        self._options = dict(options or {})
        self._timeout = timeout
        self._drivers: dict[str, Driver] = {}
        self._lock = threading.Lock()

    def read(
        self, address: Address, roots: Sequence[Address], *, limit: int | None = None
    ) -> bytes:
        """Return an object's content; `roots` are the folders that it must not lead out of.

        Raises ObjectTooLargeError before reading more than the limit.
        """
        most = self.limit if limit is None else limit
        with translate_driver_errors("read", address):
            driver = self._driver(address.protocol)
            path = resolve_within(address, roots) if address.is_local else str(address)
            _check_size(address, driver.call("info", path), most)
            data = bytes(driver.call("cat_file", path))
        _check_limit(address, len(data), most)
        return data

    def write(self, address: Address, data: bytes, root: Address) -> None:
        """Write an object whole: nobody reads it half written."""
        _check_limit(address, len(data), self.limit)
        with translate_driver_errors("write", address):
            driver = self._driver(address.protocol)
            if address.is_local:
                write_file_atomically(driver, resolve_within(address, [root]), data)
            else:
                driver.call("pipe_file", str(address), data)

    def _driver(self, protocol: str) -> Driver:
        """Return the one driver of a protocol: making one costs more than most requests."""
        with self._lock:
            if protocol not in self._drivers:
                options = self._options.get(protocol, {})
                self._drivers[protocol] = open_driver(protocol, options, self._timeout)
            return self._drivers[protocol]


def _check_size(address: Address, info: Mapping[str, object], limit: int) -> None:
    size = info.get("size")
    if info.get("type") != "file":
        raise StoreRefusedError(f"cannot read {address}: it is not an object or plain file")
    if not isinstance(size, int):
        raise StoreRefusedError(f"cannot read {address}: the store does not tell its size")
    _check_limit(address, size, limit)


def _check_limit(address: Address, size: int, limit: int) -> None:
    if size > limit:
        raise ObjectTooLargeError(f"{address} has {size} bytes, the limit is {limit}")
