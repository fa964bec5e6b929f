"""What an error answer of the API server means: one table from codes to the SDK's error tree."""

from http import HTTPStatus

import orjson

from asyncjob.depth import loads
from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    ThrottledError,
    TooLargeError,
    UnauthorizedError,
    UnknownOutcomeError,
)
from asyncjob.json_types import JsonObject, as_object, integer, text

_ERROR_BY_CODE: dict[int, type[ApiError]] = {
    400: InvalidError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: ObjectNotFoundError,
    409: ConflictError,
    410: ExpiredError,
    413: TooLargeError,
    422: InvalidError,
}

_TOO_LARGE_MESSAGES = ("request is too large", "message larger than max", "exceeds the limit")
"""What etcd and its client say, behind a 500, of an object that can never be stored."""


def parse_object(body: bytes) -> JsonObject:
    """Return the JSON object of an answer, or an empty one where it is none."""
    try:
        return as_object(loads(body))
    except orjson.JSONDecodeError:
        return {}


def error_from_response(code: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Return the error that an answer with a code of 400 or more stands for."""
    answer = parse_object(body)
    reason = text(answer, "reason")
    message = text(answer, "message") or body[:500].decode(errors="replace") or f"HTTP {code}"
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        wait = float(retry_after) if retry_after and retry_after.isdigit() else 1.0
        return ThrottledError(message, status=code, reason=reason, retry_after=wait)
    return _error_type(code, reason, message)(message, status=code, reason=reason)


def error_from_watch_event(answer: JsonObject) -> ApiError:
    """Return the error of a watch's ERROR event, whose object is a Status."""
    code = integer(answer, "code", 500)
    message, reason = text(answer, "message", f"watch error {code}"), text(answer, "reason")
    return _error_type(code, reason, message)(message, status=code, reason=reason)


def _error_type(code: int, reason: str, message: str) -> type[ApiError]:
    if reason == "AlreadyExists":
        return AlreadyExistsError
    if code >= HTTPStatus.INTERNAL_SERVER_ERROR and any(
        words in message for words in _TOO_LARGE_MESSAGES
    ):
        return TooLargeError
    if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return UnknownOutcomeError
    return _ERROR_BY_CODE.get(code, ApiError)
