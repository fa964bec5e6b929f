"""The errors of a client, by REST and on Kubernetes alike, and their form in batches."""

from http import HTTPStatus
from typing import Final

from asyncjob.errors import AsyncJobError, code_of
from asyncjob.lifecycle.arrays.item_results import ItemResultsError
from asyncjob.rest.arrays import ArrayInfo
from asyncjob.rest.jobs import Job
from asyncjob.rest.submission import Refusal
from asyncjob.submission.errors import InvalidSubmissionError

__all__ = [
    "ArrayExistsError",
    "ArrayFailedError",
    "ArrayGoneError",
    "ArrayNotFoundError",
    "ClientConfigError",
    "CronJobNotFoundError",
    "DuplicateJobError",
    "GatewayUnavailableError",
    "InTheWayError",
    "InvalidRequestError",
    "InvalidSubmissionError",
    "ItemResultsError",
    "JobExistsError",
    "JobFailedError",
    "JobGoneError",
    "JobNotFoundError",
    "JobStateError",
    "KeyReusedError",
    "NoResultError",
    "NotADeadLetterError",
    "NotAllowedError",
    "NotCancellableError",
    "NotFoundError",
    "QueueFullError",
    "QueueNotFoundError",
    "ResultElsewhereError",
    "UnauthenticatedError",
    "UnavailableError",
    "WaitTimeoutError",
]


class ClientConfigError(AsyncJobError):
    """The client does not know where to go, or with which token."""

    code = "configuration"


class NotFoundError(AsyncJobError):
    """There is no such thing in the namespace."""

    code = "not-found"


class JobNotFoundError(NotFoundError):
    """There is no job of this id in the namespace."""

    code = "no-job"


class JobGoneError(JobNotFoundError):
    """The job was deleted while it was being watched."""


class QueueNotFoundError(NotFoundError):
    """There is no AsyncQueue of this name in the namespace."""


class CronJobNotFoundError(NotFoundError):
    """There is no cron job of this name in the namespace."""


class ArrayNotFoundError(NotFoundError):
    """There is no array of this name in the namespace."""


class ArrayGoneError(ArrayNotFoundError):
    """The array was deleted while it was being watched."""


class InTheWayError(AsyncJobError):
    """An existing job stands in the way; `job_id` says which."""

    code = "conflict"

    def __init__(self, message: str | None = None, *, job_id: str = "") -> None:
        super().__init__(message)
        self.job_id = job_id


class JobExistsError(InTheWayError):
    """Another job has this name."""

    code = "job-exists"


class ArrayExistsError(InTheWayError):
    """Another array has this name."""

    code = "array-exists"


class DuplicateJobError(InTheWayError):
    """A live job has this deduplicationId."""

    code = "duplicate"


class KeyReusedError(InTheWayError):
    """The idempotencyKey belongs to a job that was submitted with another body."""

    code = "key-reused"


class JobStateError(AsyncJobError):
    """The job is not in a state that allows this."""

    code = "conflict"


class NotCancellableError(JobStateError):
    """The job or array has succeeded, or the array has failed: there is nothing to cancel."""

    code = "not-cancellable"


class NotADeadLetterError(JobStateError):
    """Only a dead letter can be redriven or dismissed."""

    code = "not-a-dead-letter"


class InvalidRequestError(AsyncJobError):
    """The request makes no sense to the server; the message names what is wrong with it."""

    code = "invalid"


class QueueFullError(AsyncJobError):
    """The queue takes no more jobs for now (`maxQueued`); `retry_after` in seconds."""

    code = "queue-full"

    retryable = True

    def __init__(self, message: str | None = None, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UnauthenticatedError(AsyncJobError):
    """The token is missing, or not accepted."""

    code = "unauthenticated"


class NotAllowedError(AsyncJobError):
    """The account of the token may not do this; the message says which right is missing."""

    code = "forbidden"


class UnavailableError(AsyncJobError):
    """No usable answer for now: what was asked for may or may not have been done."""

    code = "unavailable"

    retryable = True

    def __init__(self, message: str | None = None, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class GatewayUnavailableError(UnavailableError):
    """The gateway gives no usable answer for now."""


class NoResultError(AsyncJobError):
    """The job has no result: it has not succeeded, or its handler returned nothing."""

    code = "no-result"


class ResultElsewhereError(AsyncJobError):
    """The result is kept in a store that this client cannot read; `uri` says where."""

    code = "result-elsewhere"

    def __init__(self, message: str | None = None, *, uri: str = "") -> None:
        super().__init__(message)
        self.uri = uri


class WaitTimeoutError(AsyncJobError, TimeoutError):
    """The job had not finished in time; `job` is as it was last seen, None if it never was."""

    code = "wait-timeout"

    def __init__(self, message: str | None = None, *, job: Job | None = None) -> None:
        super().__init__(message)
        self.job = job


class JobFailedError(AsyncJobError):
    """The job has finished without success; `job` has all that is known of it."""

    code = "job-failed"

    def __init__(self, job: Job) -> None:
        super().__init__(_failure_message(job))
        self.job = job
        self.attempts = job.attempt
        self.retries = job.retries
        self.max_retries = job.max_retries
        self.error = job.error


def _failure_message(job: Job) -> str:
    """Return `job a ended as DeadLetter (RetriesExhausted) after 3 of 3 retries: OSError: no`."""
    of = "" if job.max_retries is None else f" of {job.max_retries}"
    why = f" ({job.reason})" if job.reason else ""
    last = f"{job.error.type}: {job.error.message}" if job.error else job.message or ""
    summary = f"job {job.id} ended as {job.phase.value}{why} after {job.retries}{of} retries"
    return f"{summary}: {last}" if last else summary


class ArrayFailedError(AsyncJobError):
    """The array has ended without success; `array` has all that is known of it."""

    code = "array-failed"

    def __init__(self, array: ArrayInfo) -> None:
        why = f" ({array.reason})" if array.reason else ""
        counts = f"{array.failed} of {array.total} items failed, {array.succeeded} are done"
        super().__init__(f"array {array.name} ended as {array.phase.value}{why}: {counts}")
        self.array = array


HTTP_STATUSES: Final[tuple[tuple[type[AsyncJobError], HTTPStatus], ...]] = (
    (KeyReusedError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (InvalidSubmissionError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (InvalidRequestError, HTTPStatus.BAD_REQUEST),
    (UnauthenticatedError, HTTPStatus.UNAUTHORIZED),
    (NotAllowedError, HTTPStatus.FORBIDDEN),
    (NotFoundError, HTTPStatus.NOT_FOUND),
    (NoResultError, HTTPStatus.NOT_FOUND),
    (InTheWayError, HTTPStatus.CONFLICT),
    (JobStateError, HTTPStatus.CONFLICT),
    (QueueFullError, HTTPStatus.TOO_MANY_REQUESTS),
    (UnavailableError, HTTPStatus.SERVICE_UNAVAILABLE),
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
        code=code_of(error),
        job_id=error.job_id if isinstance(error, InTheWayError) else None,
    )
