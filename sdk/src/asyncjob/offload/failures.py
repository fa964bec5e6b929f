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

MAX_WORDS: Final = 300

_FINAL_CODES: Final = frozenset(
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
_FINAL_TYPES: Final = (NotImplementedError, TypeError, ValueError, AttributeError, ImportError)
_NO_CREDENTIALS: Final = frozenset({"NoCredentialsError", "PartialCredentialsError"})
"""Of botocore, which need not be installed."""

_QUERY: Final = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?'\"<>]*)\?[^\s'\"<>]*", re.IGNORECASE)
"""A URL with a query: drivers' errors repeat those they called, signatures and tokens included."""


@contextmanager
def driver_errors(doing: str, address: Address) -> Iterator[None]:
    """Raise what a driver raises as one of ours: what was done, where, and the driver's words."""
    try:
        yield
    except OffloadError:
        raise
    except Exception as error:  # drivers raise anything
        kind, why = _meaning(error)
        raise kind(f"cannot {doing} {address}: {why}") from error


def _meaning(error: Exception) -> tuple[type[OffloadError], str]:
    if isinstance(error, FileNotFoundError):
        return ObjectMissingError, f"there is no such object, folder or bucket ({_words(error)})"
    if isinstance(error, PermissionError) or type(error).__name__ in _NO_CREDENTIALS:
        return StoreForbiddenError, f"the store does not allow it ({_words(error)})"
    if isinstance(error, TimeoutError):
        return StoreUnavailableError, "the store did not answer in time"
    if isinstance(error, _FINAL_TYPES) or _code(error) in _FINAL_CODES:
        return StoreRefusedError, _words(error)
    return StoreUnavailableError, _words(error)


def _code(error: Exception) -> int | None:
    return error.errno if isinstance(error, OSError) else None


def _words(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
    text = _QUERY.sub(r"\1?…", text)
    return text if len(text) <= MAX_WORDS else text[: MAX_WORDS - 1] + "…"
