"""One of a batch that was not accepted, as an answer: its error as REST would have told it."""

from http import HTTPStatus
from typing import Final

from asyncjob.client import errors
from asyncjob.errors import AsyncJobError
from asyncjob.rest.submission import Refusal

HTTP_STATUSES: Final[tuple[tuple[type[AsyncJobError], HTTPStatus], ...]] = (
    (errors.KeyReusedError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.InvalidSubmissionError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.InvalidRequestError, HTTPStatus.BAD_REQUEST),
    (errors.UnauthenticatedError, HTTPStatus.UNAUTHORIZED),
    (errors.NotAllowedError, HTTPStatus.FORBIDDEN),
    (errors.NotFoundError, HTTPStatus.NOT_FOUND),
    (errors.NoResultError, HTTPStatus.NOT_FOUND),
    (errors.InTheWayError, HTTPStatus.CONFLICT),
    (errors.JobStateError, HTTPStatus.CONFLICT),
    (errors.QueueFullError, HTTPStatus.TOO_MANY_REQUESTS),
    (errors.UnavailableError, HTTPStatus.SERVICE_UNAVAILABLE),
)
"""The HTTP status of each kind of error; the first that fits counts."""


def status_of(error: AsyncJobError) -> HTTPStatus:
    """Return the HTTP status that stands for the error."""
    found = (status for kind, status in HTTP_STATUSES if isinstance(error, kind))
    return next(found, HTTPStatus.INTERNAL_SERVER_ERROR)


def title_of(error: AsyncJobError) -> str:
    """Return the kind of error in words; the same for all of the kind."""
    first, *_ = (type(error).__doc__ or type(error).__name__).splitlines()
    return first.partition(";")[0].rstrip(".")


def to_refusal(error: AsyncJobError) -> Refusal:
    """Return the error as one of a batch tells it."""
    return Refusal(
        status=status_of(error),
        title=title_of(error),
        detail=str(error),
        job_id=error.job_id if isinstance(error, errors.InTheWayError) else None,
    )
