"""Error responses as RFC 9457 problems.

Which problem type an error of the API server, the client, FastAPI or a model becomes, how it is
written, and the exception handlers of the app.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

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
from asyncjob.models.field_errors import field_detail
from asyncjob.rest.problem import PROBLEM_CONTENT_TYPE, FieldProblem, Problem
from asyncjob_gateway import problem_types
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.problem_types import ProblemType


def problem_response(error: RefusedError, path: str) -> Response:
    """Return the answer that tells of the error."""
    problem = Problem(
        type=error.kind.type,
        title=error.kind.title,
        status=error.kind.status,
        detail=error.detail,
        instance=path,
        job_id=error.job_id,
        errors=list(error.errors),
    )
    body = problem.model_dump_json(by_alias=True, exclude_none=True)
    return Response(body, error.kind.status, _response_headers(error), PROBLEM_CONTENT_TYPE)


def _response_headers(error: RefusedError) -> Mapping[str, str]:
    if error.retry_after is None:
        return error.headers
    return {**error.headers, "Retry-After": str(max(1, math.ceil(error.retry_after)))}


log = structlog.get_logger()

RETRY_AFTER_SECONDS: Final = 2.0
"""When to try again after an outage whose end nobody knows."""

_MAX_DETAIL_CHARS: Final = 1000
"""Characters of a detail: paths into a body may be as long as the body."""

_GATEWAY_LACKS_RIGHT: Final = "the gateway lacks a permission for this request; its log names it"

_RBAC_DENIAL: Final = re.compile(r'User "[^"]*" cannot ')

_MAX_FIELD_PROBLEMS: Final = 20
"""Most fields that one answer speaks of."""

_TYPE_BY_STATUS: Final = {
    HTTPStatus.NOT_FOUND: problem_types.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED: problem_types.METHOD_NOT_ALLOWED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: problem_types.TOO_LARGE,
    HTTPStatus.BAD_REQUEST: problem_types.MALFORMED,
}

_TYPE_BY_ERROR: Final[Sequence[tuple[type[AsyncJobError], ProblemType]]] = (
    (TooManyValuesError, problem_types.TOO_LARGE),
    (FreeJsonError, problem_types.MALFORMED),
    (client.InvalidSubmissionError, problem_types.INVALID),
    (client.InvalidRequestError, problem_types.INVALID),
    (client.JobNotFoundError, problem_types.NO_JOB),
    (client.NotFoundError, problem_types.NOT_FOUND),
    (client.DuplicateJobError, problem_types.DUPLICATE),
    (client.KeyReusedError, problem_types.KEY_REUSED),
    (client.JobExistsError, problem_types.JOB_EXISTS),
    (client.ArrayExistsError, problem_types.ARRAY_EXISTS),
    (client.NotCancellableError, problem_types.NOT_CANCELLABLE),
    (client.NotADeadLetterError, problem_types.NOT_A_DEAD_LETTER),
    (client.JobStateError, problem_types.CONFLICT),
    (client.NoResultError, problem_types.NO_RESULT),
    (client.NotAllowedError, problem_types.FORBIDDEN),
    (ForbiddenError, problem_types.FORBIDDEN),
    (ObjectNotFoundError, problem_types.NOT_FOUND),
    (ConflictError, problem_types.CONFLICT),
    (TooLargeError, problem_types.TOO_LARGE),
    (InvalidError, problem_types.INVALID),
)


def to_refused_error(error: AsyncJobError) -> RefusedError:
    """Return what the caller is told of an error of ours or of the API server."""
    if isinstance(error, RefusedError):
        return error
    if _is_denied_to_gateway(error):
        log.error("the gateway lacks a permission", error=str(error))
        return RefusedError(
            problem_types.UNAVAILABLE, _GATEWAY_LACKS_RIGHT, retry_after=RETRY_AFTER_SECONDS
        )
    for type_, kind in _TYPE_BY_ERROR:
        if isinstance(error, type_):
            return RefusedError(
                kind, _detail_of(error), job_id=_job_id_of(error), errors=_field_problems_of(error)
            )
    if isinstance(error, ThrottledError):
        return RefusedError(problem_types.THROTTLED, retry_after=error.retry_after)
    return RefusedError(problem_types.UNAVAILABLE, retry_after=RETRY_AFTER_SECONDS)


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
    kind = _TYPE_BY_STATUS.get(HTTPStatus(error.status_code), problem_types.INTERNAL)
    return RefusedError(kind, headers=error.headers)


def from_validation_error(error: RequestValidationError) -> RefusedError:
    """Return what the caller is told of fields that do not fit."""
    found = list(_to_field_problems(error.errors()))
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    detail = f"{found[0].field}: {found[0].detail}{more}" if found else ""
    return RefusedError(problem_types.INVALID, detail, errors=found[:_MAX_FIELD_PROBLEMS])


def _to_field_problems(errors: Sequence[Any]) -> Iterator[FieldProblem]:
    """Yield field by field; what was sent is never repeated, it may be a secret."""
    for error in errors:
        where, *path = error["loc"]
        prefix = [] if where == "body" else [str(where)]
        name = ".".join([*prefix, *map(str, path)]) or "body"
        yield FieldProblem(field=name, detail=field_detail(error))


def install_exception_handlers(app: FastAPI) -> None:
    """Set the handlers of an app; an unexpected error is logged by the app's server."""
    app.add_exception_handler(AsyncJobError, _on_asyncjob_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(Exception, _on_unexpected_error)


async def _on_asyncjob_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, AsyncJobError)
    return problem_response(to_refused_error(error), request.url.path)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem_response(from_http_exception(error), request.url.path)


async def _on_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return problem_response(from_validation_error(error), request.url.path)


async def _on_unexpected_error(request: Request, _error: Exception) -> Response:
    return problem_response(RefusedError(problem_types.INTERNAL), request.url.path)
