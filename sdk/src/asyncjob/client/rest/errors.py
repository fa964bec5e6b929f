"""Maps problem types and status codes of the gateway's responses to the errors of a client."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from pydantic import ValidationError

from asyncjob.client import errors
from asyncjob.client.connection import Answer
from asyncjob.errors import AsyncJobError
from asyncjob.rest.problem import Problem
from asyncjob.submission.errors import InvalidSubmissionError

ErrorFactory = Callable[[str], AsyncJobError]

_ERROR_BY_PROBLEM_TYPE: Final[Mapping[str, ErrorFactory]] = {
    "malformed": errors.InvalidRequestError,
    "unauthenticated": errors.UnauthenticatedError,
    "forbidden": errors.NotAllowedError,
    "foreign-request": errors.NotAllowedError,
    "no-job": errors.JobNotFoundError,
    "no-result": errors.NoResultError,
    "not-cancellable": errors.NotCancellableError,
    "not-a-dead-letter": errors.NotADeadLetterError,
    "conflict": errors.JobStateError,
}

_CONFLICT_BY_PROBLEM_TYPE: Final[Mapping[str, type[errors.InTheWayError]]] = {
    "array-exists": errors.ArrayExistsError,
    "duplicate": errors.DuplicateJobError,
    "job-exists": errors.JobExistsError,
    "key-reused": errors.KeyReusedError,
}

_ERROR_BY_STATUS: Final[Mapping[int, ErrorFactory]] = {
    HTTPStatus.UNAUTHORIZED: errors.UnauthenticatedError,
    HTTPStatus.FORBIDDEN: errors.NotAllowedError,
    HTTPStatus.NOT_FOUND: errors.NotFoundError,
    HTTPStatus.CONFLICT: errors.JobStateError,
}


def error_from_answer(answer: Answer, *, submits: bool = False) -> AsyncJobError:
    """Return the error that an answer with a status of 400 or more stands for.

    `submits`: a job was to be submitted, so that fields that are wrong are those of a job.
    """
    problem = _read_problem(answer)
    kind = problem.type.rpartition("/")[2]
    message = problem.detail or problem.title
    if kind in _CONFLICT_BY_PROBLEM_TYPE:
        return _CONFLICT_BY_PROBLEM_TYPE[kind](message, job_id=problem.job_id or "")
    if submits and (problem.errors or kind in {"invalid", "too-large", "malformed"}):
        return InvalidSubmissionError(problem.errors, message if not problem.errors else None)
    if kind in _ERROR_BY_PROBLEM_TYPE:
        return _ERROR_BY_PROBLEM_TYPE[kind](message)
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        return _throttled_error(kind, message, _retry_after(answer))
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return errors.GatewayUnavailableError(message, retry_after=_retry_after(answer))
    return _ERROR_BY_STATUS.get(answer.status, errors.InvalidRequestError)(message)


def _throttled_error(kind: str, message: str, retry_after: float | None) -> AsyncJobError:
    if kind == "queue-full":
        return errors.QueueFullError(message, retry_after=retry_after or 1.0)
    return errors.GatewayUnavailableError(message, retry_after=retry_after)


def _read_problem(answer: Answer) -> Problem:
    """Return the problem, or what can be said where something else than the gateway answers."""
    try:
        return Problem.model_validate(answer.body)
    except ValidationError:
        words = f"the server answers {answer.status} and does not say why"
        return Problem(title=words, status=answer.status)


def _retry_after(answer: Answer) -> float | None:
    header = answer.headers.get("retry-after", "")
    return float(header) if header.isascii() and header.isdigit() else None
