"""Errors about child jobs as JSON, and back as the same classes, so that an `except` works.

Must not know who sends them.
"""

from collections.abc import Iterator
from typing import Final

from asyncjob import errors
from asyncjob.app import child_errors
from asyncjob.errors import ApiError, AsyncJobError
from asyncjob.json_types import Json, JsonObject, integer, text, texts


def error_to_json(error: BaseException) -> JsonObject:
    """Return an error with all that an equal one is made of."""
    names: list[Json] = [kind.__name__ for kind in type(error).__mro__]
    plain: dict[str, Json] = {"classes": names, "message": str(error)}
    if isinstance(error, ApiError):
        plain |= {"status": error.status, "reason": error.reason}
    return plain


def error_from_json(plain: JsonObject) -> Exception:
    """Return an error of the same class; of the nearest base class that is known here, if not."""
    names, message = texts(plain, "classes"), text(plain, "message")
    kind = next((_KNOWN_ERRORS[name] for name in names if name in _KNOWN_ERRORS), None)
    if kind is None:
        return AsyncJobError(f"{names[0]}: {message}" if names else message)
    error = kind(message)
    if isinstance(error, ApiError):
        error.status, error.reason = integer(plain, "status"), text(plain, "reason")
    return error


def _error_classes() -> Iterator[type[Exception]]:
    yield from (TimeoutError, ValueError)
    for module in (errors, child_errors):
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, AsyncJobError):
                yield kind


_KNOWN_ERRORS: Final = {kind.__name__: kind for kind in _error_classes()}
