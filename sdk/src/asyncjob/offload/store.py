"""`Store` reads and writes whole objects through fsspec, in the calling thread.

The only module that names fsspec, which is imported late, because few who use the SDK offload
anything.

Sizes are in bytes, times in seconds. What fsspec's drivers raise is translated to `OffloadError` by
a table, because each driver has its own errors and fsspec no common ones; an error not known to be
permanent is an outage, so that no work is lost for want of a rule. Local addresses stay inside
their folder wherever symbolic links lead, and local files appear whole or not at all and survive a
loss of power.
"""

import errno
import hashlib
import os
import re
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from asyncjob.extras import needs
from asyncjob.offload.addresses import Address
from asyncjob.offload.errors import (
    AddressError,
    DriverMissingError,
    ObjectMissingError,
    ObjectTooLargeError,
    OffloadError,
    StoreForbiddenError,
    StoreRefusedError,
    StoreUnavailableError,
)

_DEFAULT_OPTIONS: Final[Mapping[str, Mapping[str, object]]] = {
    "http": {"allow_redirects": False},
    "https": {"allow_redirects": False},
}
"""A redirect could lead out of what is allowed."""


@dataclass(frozen=True, slots=True)
class Driver:
    """One fsspec file system; `timeout` in seconds bounds each call that can be interrupted."""

    filesystem: Any
    timeout: float

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call one of its methods."""
        if not self.filesystem.async_impl or not hasattr(self.filesystem, f"_{name}"):
            return getattr(self.filesystem, name)(*args, **kwargs)
        from fsspec.asyn import sync

        method = getattr(self.filesystem, f"_{name}")
        return sync(self.filesystem.loop, method, *args, timeout=self.timeout, **kwargs)


def check_driver(protocol: str) -> None:
    """Raise DriverMissingError that says what to install if a protocol's driver is missing."""
    with needs("offload"):
        import fsspec

    try:
        fsspec.get_filesystem_class(protocol)
    except (ImportError, ValueError) as error:
        raise DriverMissingError(
            f"no driver for {protocol}://: {_install_hint(protocol, error)}"
        ) from error


def open_driver(protocol: str, options: Mapping[str, Any], timeout: float) -> Driver:
    """Return a new driver; raises DriverMissingError, and what its constructor raises."""
    check_driver(protocol)
    import fsspec

    # What is listed once is not remembered: an object that was missing may have come.
    own = {"skip_instance_cache": True, "use_listings_cache": False}
    made = {**_DEFAULT_OPTIONS.get(protocol, {}), **options, **own}
    return Driver(fsspec.filesystem(protocol, **made), timeout)


def _install_hint(protocol: str, error: Exception) -> str:
    from fsspec.registry import known_implementations

    if protocol not in known_implementations:
        return "fsspec does not know this protocol"
    package = str(known_implementations[protocol]["class"]).partition(".")[0]
    if package == "fsspec":
        return str(error)
    return f"pip install {package} ({error})"


MAX_ERROR_TEXT_LENGTH: Final = 300

_HTTP: Final = "aiohttp"
"""The driver for HTTP is made of it; an installation without that driver may lack it."""

_MISSING_STATUSES: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
_FORBIDDEN_STATUSES: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_PASSING_STATUSES: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})

_PERMANENT_ERRNOS: Final = frozenset(
    {
        errno.EEXIST,
        errno.EINVAL,
        errno.EISDIR,
        errno.EMSGSIZE,
        errno.ENAMETOOLONG,
        errno.ENOSYS,
        errno.ENOTDIR,
        errno.EROFS,
    }
)
_PERMANENT_TYPES: Final = (NotImplementedError, TypeError, ValueError, AttributeError, ImportError)
_NO_CREDENTIALS: Final = frozenset({"NoCredentialsError", "PartialCredentialsError"})
"""Of botocore, which need not be installed."""

_URL_QUERY: Final = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?'\"<>]*)\?[^\s'\"<>]*", re.IGNORECASE)
"""A URL with a query: drivers' errors repeat those they called, signatures and tokens included."""


@contextmanager
def translate_driver_errors(action: str, address: Address) -> Iterator[None]:
    """Raise what a driver raises as one of ours: what was done, where, and the driver's words."""
    try:
        yield
    except OffloadError:
        raise
    except Exception as error:  # drivers raise anything
        kind, why = _classify(error)
        raise kind(f"cannot {action} {address}: {why}") from error


def _classify(error: Exception) -> tuple[type[OffloadError], str]:
    if isinstance(error, FileNotFoundError):
        cause = error.__cause__ or error
        if isinstance(cause, TimeoutError) or type(cause).__module__.partition(".")[0] == _HTTP:
            return _classify_http(cause)
        return (
            ObjectMissingError,
            f"object, folder or bucket not found ({_error_text(error)})",
        )
    if isinstance(error, PermissionError) or type(error).__name__ in _NO_CREDENTIALS:
        return StoreForbiddenError, f"the store does not allow it ({_error_text(error)})"
    if isinstance(error, TimeoutError):
        return StoreUnavailableError, "the store did not answer in time"
    if isinstance(error, _PERMANENT_TYPES) or _errno(error) in _PERMANENT_ERRNOS:
        return StoreRefusedError, _error_text(error)
    return StoreUnavailableError, _error_text(error)


def _classify_http(error: BaseException) -> tuple[type[OffloadError], str]:
    """Return what an HTTP server's error is, which the driver calls a missing file, any of them."""
    status = getattr(error, "status", None)
    if not isinstance(status, int):
        return StoreUnavailableError, _error_text(error)
    answer = f"the server answers {status} {getattr(error, 'message', '')}".rstrip()
    if status in _MISSING_STATUSES:
        return ObjectMissingError, f"object, folder or bucket not found ({answer})"
    if status in _FORBIDDEN_STATUSES:
        return StoreForbiddenError, f"the store does not allow it ({answer})"
    is_passing = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING_STATUSES
    return (StoreUnavailableError if is_passing else StoreRefusedError), answer


def _errno(error: Exception) -> int | None:
    return error.errno if isinstance(error, OSError) else None


def _error_text(error: BaseException) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
    text = _URL_QUERY.sub(r"\1?…", text)
    return text if len(text) <= MAX_ERROR_TEXT_LENGTH else text[: MAX_ERROR_TEXT_LENGTH - 1] + "…"


def resolve_within(address: Address, roots: Sequence[Address]) -> str:
    """Return the file that a local address leads to.

    Raises AddressError if that is outside of each of the folders. Anyone who may change the folders
    themselves could do so between this and the opening: they have to be the worker's own, or those
    of somebody it trusts.
    """
    real = Path(address.path).resolve()
    if any(real.is_relative_to(Path(root.path).resolve()) for root in roots):
        return str(real)
    raise AddressError(f"{address} leads out of its folder by a symbolic link")


def write_file_atomically(driver: Driver, path: str, data: bytes) -> None:
    """Write a file under another name, then give it its own; makes its folder."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    driver.call("makedirs", str(target.parent), exist_ok=True)
    try:
        driver.call("pipe_file", str(draft), data)
        _fsync(draft)
        driver.call("mv", str(draft), path)
    except BaseException:
        # On a full disk each try would leave another half of it.
        with suppress(OSError):
            draft.unlink()
        raise
    _fsync(target.parent)


def _fsync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


MAX_OBJECT_BYTES: Final = 64 * 1024 * 1024
"""Larger objects are better read and written by the handler itself, in parts."""

REQUEST_TIMEOUT_SECONDS: Final = 60.0

MAX_VERSION_LENGTH: Final = 256

_VERSION_FIELDS: Final = (
    *("ETag", "etag", "md5Hash", "content_md5", "mtime"),
    *("LastModified", "last_modified", "updated", "modified", "created"),
)
"""By the drivers for S3, Azure, Google, HTTP, local files and memory. A file on this machine may be
written twice in one tick of its file system's clock, which is at most a few milliseconds."""

_PARTS_BY_ASKING: Final = frozenset({"http", "https"})
"""Protocols whose servers may answer with the whole file."""

DriverOptions = Mapping[str, Mapping[str, Any]]
"""By protocol: what fsspec's driver is made with, such as `endpoint_url`."""


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """What is known of an object without reading it."""

    size: int
    """In bytes."""

    version: str
    """Another one whenever the object has another content: its entity tag, or when it changed."""


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

    def stat(self, address: Address, roots: Sequence[Address]) -> ObjectStat:
        """Return size and version of an object of any size."""
        with translate_driver_errors("read", address):
            driver = self._driver(address.protocol)
            path = resolve_within(address, roots) if address.is_local else str(address)
            info: Mapping[str, object] = driver.call("info", path)
        size = _object_size(address, info)
        if address.protocol in _PARTS_BY_ASKING and not info.get("partial") and size > self.limit:
            raise StoreRefusedError(
                f"cannot read {address}: its server gives no parts of files, and it is larger "
                f"than {self.limit} bytes"
            )
        return ObjectStat(size, _object_version(address, info, size))

    def read_part(self, address: Address, roots: Sequence[Address], start: int, end: int) -> bytes:
        """Return the bytes of an object from `start` to before `end`, which must exist."""
        with translate_driver_errors("read", address):
            driver = self._driver(address.protocol)
            path = resolve_within(address, roots) if address.is_local else str(address)
            data = bytes(driver.call("cat_file", path, start=start, end=end))
        if len(data) >= end > end - start:
            data = data[start:end]  # the server has given the whole file
        if len(data) != end - start:
            raise StoreUnavailableError(
                f"cannot read {address}: {len(data)} bytes have come, not {end - start}"
            )
        return data

    def names(self, address: Address, roots: Sequence[Address]) -> list[str]:
        """Return the names of what is in a folder; nothing if there is no such folder."""
        try:
            with translate_driver_errors("list", address):
                driver = self._driver(address.protocol)
                path = resolve_within(address, roots) if address.is_local else str(address)
                found: Sequence[str] = driver.call("ls", path, detail=False)
        except ObjectMissingError:
            return []
        return [one.rstrip("/").rpartition("/")[2] for one in found]

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
    _check_limit(address, _object_size(address, info), limit)


def _object_size(address: Address, info: Mapping[str, object]) -> int:
    size = info.get("size")
    if info.get("type") != "file":
        raise StoreRefusedError(f"cannot read {address}: it is not an object or plain file")
    if not isinstance(size, int):
        raise StoreRefusedError(f"cannot read {address}: the store does not report its size")
    return size


def _object_version(address: Address, info: Mapping[str, object], size: int) -> str:
    """Return the first of what the drivers know that changes with the content."""
    for name in _VERSION_FIELDS:
        if info.get(name):
            version = f"{name}={info[name]} size={size}"
            return version if len(version) <= MAX_VERSION_LENGTH else _digest(version)
    raise StoreRefusedError(
        f"cannot read {address} in parts: the store does not report when it was changed"
    )


def _digest(version: str) -> str:
    return f"sha256={hashlib.sha256(version.encode()).hexdigest()}"


def _check_limit(address: Address, size: int, limit: int) -> None:
    if size > limit:
        raise ObjectTooLargeError(f"{address} has {size} bytes, the limit is {limit}")
