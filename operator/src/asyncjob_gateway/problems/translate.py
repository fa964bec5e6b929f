"""Which problem an error from elsewhere is: the API server's, the framework's, a model's."""

import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from asyncjob.client import errors as client
from asyncjob.errors import (
    AsyncJobError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    ThrottledError,
    TooLargeError,
)
from asyncjob.free_json import FreeJsonError, TooManyValuesError
from asyncjob.rest.problem import FieldProblem
from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.kinds import ProblemType

log = structlog.get_logger()

RETRY_AFTER_SECONDS: Final = 2.0
"""When to try again after an outage whose end nobody knows."""

_MAX_DETAIL_CHARS: Final = 1000
"""Characters of a detail: paths into a body may be as long as the body."""

_GATEWAY_LACKS_RIGHT: Final = "the gateway itself lacks a right that this takes; its log says which"

_RBAC_DENIAL: Final = re.compile(r'User "[^"]*" cannot ')

_MAX_FIELD_PROBLEMS: Final = 20
"""Most fields that one answer speaks of."""

_TYPE_BY_STATUS: Final = {
    HTTPStatus.NOT_FOUND: kinds.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED: kinds.METHOD_NOT_ALLOWED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: kinds.TOO_LARGE,
    HTTPStatus.BAD_REQUEST: kinds.MALFORMED,
}

_TYPE_BY_ERROR: Final[Sequence[tuple[type[AsyncJobError], ProblemType]]] = (
    (TooManyValuesError, kinds.TOO_LARGE),
    (FreeJsonError, kinds.MALFORMED),
    (client.InvalidSubmissionError, kinds.INVALID),
    (client.InvalidRequestError, kinds.INVALID),
    (client.JobNotFoundError, kinds.NO_JOB),
    (client.NotFoundError, kinds.NOT_FOUND),
    (client.DuplicateJobError, kinds.DUPLICATE),
    (client.KeyReusedError, kinds.KEY_REUSED),
    (client.JobExistsError, kinds.JOB_EXISTS),
    (client.NotCancellableError, kinds.NOT_CANCELLABLE),
    (client.NotADeadLetterError, kinds.NOT_A_DEAD_LETTER),
    (client.JobStateError, kinds.CONFLICT),
    (client.NoResultError, kinds.NO_RESULT),
    (client.NotAllowedError, kinds.FORBIDDEN),
    (ForbiddenError, kinds.FORBIDDEN),
    (ObjectNotFoundError, kinds.NOT_FOUND),
    (ConflictError, kinds.CONFLICT),
    (TooLargeError, kinds.TOO_LARGE),
    (InvalidError, kinds.INVALID),
)


def to_refused_error(error: AsyncJobError) -> RefusedError:
    """Return what the caller is told of an error of ours or of the API server."""
    if isinstance(error, RefusedError):
        return error
    if _is_denied_to_gateway(error):
        log.error("the gateway lacks a right", error=str(error))
        return RefusedError(
            kinds.UNAVAILABLE, _GATEWAY_LACKS_RIGHT, retry_after=RETRY_AFTER_SECONDS
        )
    for type_, kind in _TYPE_BY_ERROR:
        if isinstance(error, type_):
            return RefusedError(
                kind, _detail_of(error), job_id=_job_id_of(error), errors=_field_problems_of(error)
            )
    if isinstance(error, ThrottledError):
        return RefusedError(kinds.THROTTLED, retry_after=error.retry_after)
    return RefusedError(kinds.UNAVAILABLE, retry_after=RETRY_AFTER_SECONDS)


def _is_denied_to_gateway(error: AsyncJobError) -> bool:
    """Return whether it is the gateway that may not, by RBAC; not a policy, or a quota."""
    refused = isinstance(error, ForbiddenError | client.NotAllowedError)
    return refused and _RBAC_DENIAL.search(str(error)) is not None


def _detail_of(error: AsyncJobError) -> str:
    return str(error)[:_MAX_DETAIL_CHARS]


def _job_id_of(error: AsyncJobError) -> str | None:
    return error.job_id or None if isinstance(error, client.InTheWayError) else None


def _field_problems_of(error: AsyncJobError) -> Sequence[FieldProblem]:
    return (
        error.errors[:_MAX_FIELD_PROBLEMS]
        if isinstance(error, client.InvalidSubmissionError)
        else ()
    )


def from_http_exception(error: HTTPException) -> RefusedError:
    """Return what the caller is told where the framework itself refuses."""
    kind = _TYPE_BY_STATUS.get(HTTPStatus(error.status_code), kinds.INTERNAL)
    return RefusedError(kind, headers=error.headers)


def from_validation_error(error: RequestValidationError) -> RefusedError:
    """Return what the caller is told of fields that do not fit."""
    found = list(_to_field_problems(error.errors()))
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    detail = f"{found[0].field}: {found[0].detail}{more}" if found else ""
    return RefusedError(kinds.INVALID, detail, errors=found[:_MAX_FIELD_PROBLEMS])


def _to_field_problems(errors: Sequence[Any]) -> Iterator[FieldProblem]:
    """Yield field by field; what was sent is never repeated, it may be a secret."""
    for error in errors:
        where, *path = error["loc"]
        prefix = [] if where == "body" else [str(where)]
        name = ".".join([*prefix, *map(str, path)]) or "body"
        yield FieldProblem(field=name, detail=_field_detail(error))


def _field_detail(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "There is no such field"
    return str(error["msg"])
