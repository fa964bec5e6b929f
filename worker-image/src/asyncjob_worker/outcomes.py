"""How an attempt ended, as the one change of status to report. Decides; does not act."""

from collections.abc import Mapping

from pydantic import ValidationError

from asyncjob.app import Category, Fail, Handler, Retry
from asyncjob.app.categories import categorize
from asyncjob.app.handler import explain
from asyncjob.free_json import FreeJsonError, normalize
from asyncjob.lifecycle import outcome
from asyncjob.lifecycle.move import Move
from asyncjob.lifecycle.outcome import Failure
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.view import JobView
from asyncjob_worker.held import Stop

Categories = Mapping[type[BaseException], str]


def succeeded(job: JobView, handler: Handler, result: object, *, max_bytes: int, now: str) -> Move:
    """Return success, or the refusal of a result that cannot be stored."""
    try:
        plain = normalize(handler.dump_result(result), what="the result", max_bytes=max_bytes)
    except (FreeJsonError, ValueError, TypeError) as error:
        return result_refused(job, str(error), now=now)
    return outcome.succeed(job, now=now, result=plain)


def result_refused(job: JobView, message: str, *, now: str) -> Move:
    """Return the dead letter of a job whose result can never be stored."""
    failure = Failure(
        Reason.RESULT_REFUSED,
        Category.VALIDATION,
        message,
        final=True,
        reason=Reason.RESULT_REFUSED,
    )
    return outcome.fail(job, failure, now=now, draw=0.0)


def invalid_payload(job: JobView, error: ValidationError, *, now: str) -> Move:
    """Return the dead letter of a job whose payload its handler's schema refuses."""
    failure = Failure(
        type="ValidationError",
        category=Category.VALIDATION,
        message=explain(error),
        final=True,
        reason=Reason.INVALID_PAYLOAD,
    )
    return outcome.fail(job, failure, now=now, draw=0.0)


def failed(
    job: JobView, error: BaseException, categories: Categories, *, now: str, draw: float
) -> Move:
    """Return what becomes of a job whose handler raised."""
    return outcome.fail(job, _failure(error, categories), now=now, draw=draw)


def stopped(job: JobView, why: Stop, *, now: str, draw: float) -> Move | None:
    """Return what becomes of a job whose handler was stopped; None: it is no longer ours."""
    match why:
        case Stop.CANCELLED:
            return outcome.cancelled(job, "cancelled while running", now=now)
        case Stop.TIMED_OUT:
            return outcome.fail(job, _timeout(job), now=now, draw=draw)
        case Stop.DRAINING:
            message = "the worker is shutting down"
            return outcome.release(job, Reason.RELEASED, message, now=now, draw=draw)
        case Stop.FENCED:
            return None


def _timeout(job: JobView) -> Failure:
    limit = job.effective.execution_timeout_seconds if job.effective else 0
    return Failure(
        type="ExecutionTimeout",
        category=Category.TIMEOUT,
        message=f"the attempt ran longer than {limit} s",
        reason=Reason.EXECUTION_TIMEOUT,
    )


def _failure(error: BaseException, categories: Categories) -> Failure:
    kind, message = type(error).__name__, str(error) or type(error).__name__
    if isinstance(error, Fail):
        return Failure(kind, error.category, message, final=True)
    if isinstance(error, Retry):
        category = categorize(error.__cause__ or error, categories)
        return Failure(kind, category, message, after=error.after, reason=Reason.RETRY_REQUESTED)
    return Failure(kind, categorize(error, categories), message)
