"""What a driver's error means: a table, because each driver has its own and fsspec no common ones.

What is not known to be final is taken for an outage, so that no work is lost for want of a rule.
"""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from asyncjob.offload.addresses import Address
from asyncjob.offload.errors import (
    ObjectMissingError,
    OffloadError,
    StoreForbiddenError,
    StoreRefusedError,
    StoreUnavailableError,
)

MAX_ERROR_TEXT_LENGTH: Final = 300

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
        return (
            ObjectMissingError,
            f"there is no such object, folder or bucket ({_error_text(error)})",
        )
    if isinstance(error, PermissionError) or type(error).__name__ in _NO_CREDENTIALS:
        return StoreForbiddenError, f"the store does not allow it ({_error_text(error)})"
    if isinstance(error, TimeoutError):
        return StoreUnavailableError, "the store did not answer in time"
    if isinstance(error, _PERMANENT_TYPES) or _errno(error) in _PERMANENT_ERRNOS:
        return StoreRefusedError, _error_text(error)
    return StoreUnavailableError, _error_text(error)


def _errno(error: Exception) -> int | None:
    return error.errno if isinstance(error, OSError) else None


def _error_text(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
    text = _URL_QUERY.sub(r"\1?…", text)
    return text if len(text) <= MAX_ERROR_TEXT_LENGTH else text[: MAX_ERROR_TEXT_LENGTH - 1] + "…"
