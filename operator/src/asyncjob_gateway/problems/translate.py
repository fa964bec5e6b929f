"""Which problem an error from elsewhere is: the API server's, the framework's, a model's."""

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from asyncjob.errors import (
    ApiError,
    AsyncJobError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ThrottledError,
    TooLargeError,
)
from asyncjob.free_json import FreeJsonError
from asyncjob.rest.problem import FieldProblem
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.problems import kinds
from asyncjob_gateway.problems.kinds import Kind

AGAIN_SECONDS: Final = 2.0
"""When to try again after an outage whose end nobody knows."""

_SHOWN: Final = 20
"""Most fields that one answer speaks of."""

_BY_STATUS: Final = {
    HTTPStatus.NOT_FOUND: kinds.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED: kinds.BAD_METHOD,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: kinds.TOO_LARGE,
    HTTPStatus.BAD_REQUEST: kinds.MALFORMED,
}

_BY_ERROR: Final[Sequence[tuple[type[AsyncJobError], Kind]]] = (
    (FreeJsonError, kinds.MALFORMED),
    (ForbiddenError, kinds.FORBIDDEN),
    (NotFoundError, kinds.NOT_FOUND),
    (ConflictError, kinds.CONFLICT),
    (TooLargeError, kinds.TOO_LARGE),
    (InvalidError, kinds.INVALID),
)


def refusal_of(error: AsyncJobError) -> RefusedError:
    """Return what the caller is told of an error of ours or of the API server."""
    if isinstance(error, RefusedError):
        return error
    for type_, kind in _BY_ERROR:
        if isinstance(error, type_):
            return RefusedError(kind, str(error))
    if isinstance(error, ThrottledError):
        return RefusedError(kinds.THROTTLED, retry_after=error.retry_after)
    if isinstance(error, ApiError):  # no answer, or none to be told: our own token refused, say
        return RefusedError(kinds.UNAVAILABLE, retry_after=AGAIN_SECONDS)
    return RefusedError(kinds.INTERNAL)


def from_framework(error: HTTPException) -> RefusedError:
    """Return what the caller is told where the framework itself refuses."""
    kind = _BY_STATUS.get(HTTPStatus(error.status_code), kinds.INTERNAL)
    return RefusedError(kind, headers=error.headers)


def from_validation(error: RequestValidationError) -> RefusedError:
    """Return what the caller is told of fields that do not fit."""
    found = list(_fields(error.errors()))
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    detail = f"{found[0].field}: {found[0].detail}{more}" if found else ""
    return RefusedError(kinds.INVALID, detail, errors=found[:_SHOWN])


def _fields(errors: Sequence[Any]) -> Iterator[FieldProblem]:
    """Yield field by field; what was sent is never repeated, it may be a secret."""
    for error in errors:
        where, *path = error["loc"]
        prefix = [] if where == "body" else [str(where)]
        name = ".".join([*prefix, *map(str, path)]) or "body"
        yield FieldProblem(field=name, detail=_words(error))


def _words(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "There is no such field"
    return str(error["msg"])
