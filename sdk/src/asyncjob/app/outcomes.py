"""How an attempt ended, as the phase change to report. Decides; does not act."""

from typing import Final

import orjson
from pydantic import ValidationError

from asyncjob.app.context import Stop
from asyncjob.app.error_report import (
    CategoryMapping,
    ErrorKind,
    ErrorReport,
    HandlerCrashedError,
    ReportedError,
    describe_error,
    to_error_report,
)
from asyncjob.app.handler import Handler, describe_validation_error
from asyncjob.app.waits import is_park
from asyncjob.errors import ApiError, TooLargeError
from asyncjob.free_json import FreeJsonError, TooManyBytesError, encode, size_of
from asyncjob.lifecycle import phase_change
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import Failure, PhaseChange
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import BUILT_IN_POLICY, Category, retry_delay

OFFLOAD_HINT: Final = "; start the worker with --offload-url to keep larger results in a store"


def succeeded(
    job: JobView, handler: Handler, result: object, *, max_bytes: int, now: str
) -> PhaseChange:
    """Return success, or the refusal of a result that cannot be stored, for the test kit.

    The worker does the same in `ResultStore.store()`, which may keep a large result elsewhere.
    """
    try:
        data = encode_result(handler, result, max_bytes=max_bytes)
    except TooManyBytesError as error:
        return result_refused(job, f"{error}{OFFLOAD_HINT}", now=now)
    except FreeJsonError as error:
        return result_refused(job, str(error), now=now)
    return phase_change.succeed(job, now=now, result=orjson.loads(data))


def encode_result(handler: Handler, result: object, *, max_bytes: int) -> bytes:
    """Return a handler's result as JSON text; raises FreeJsonError, and nothing else."""
    try:
        return encode(handler.dump_result(result), what="the result", max_bytes=max_bytes)
    except FreeJsonError:
        raise
    except Exception as error:  # a serializer of the handler's own may raise anything
        raise FreeJsonError(f"the result is not JSON: {describe_error(error)}") from error


def result_refused(job: JobView, message: str, *, now: str) -> PhaseChange:
    """Return the dead letter of a job whose result can never be stored."""
    failure = Failure(
        Reason.RESULT_REFUSED,
        Category.VALIDATION,
        message,
        permanent=True,
        reason=Reason.RESULT_REFUSED,
    )
    return phase_change.fail(job, failure, now=now, jitter_sample=0.0)


def refused_by_api_server(
    job: JobView, change: PhaseChange, error: ApiError, *, now: str
) -> PhaseChange:
    """Return the dead letter of a job whose result, or whose park, the API server does not take."""
    if (waiting := change.fields.get("waiting")) is not None:
        size = size_of([waiting, change.fields.get("waits")])
        message = (
            f"the job has no room to be parked: what it waits for has {size} bytes, and with it "
            f"the job exceeds what the store takes (by default 1572864 bytes in all): {error}"
        )
        return result_refused(job, message, now=now)
    size = size_of(change.fields.get("result"))
    if isinstance(error, TooLargeError):
        message = (
            f"the result has {size} bytes, and with it the job exceeds what the store takes "
            f"(by default 1572864 bytes in all): {error}"
        )
        return result_refused(job, message, now=now)
    return result_refused(job, f"the API server refuses the result: {error}", now=now)


def unreadable_payload(job: JobView, error: Exception, *, now: str) -> PhaseChange:
    """Return the dead letter of a job whose payload lies where it can never be read."""
    failure = Failure(
        type=type(error).__name__,
        category=Category.VALIDATION,
        message=describe_error(error),
        permanent=True,
        reason=Reason.INVALID_PAYLOAD,
    )
    return phase_change.fail(job, failure, now=now, jitter_sample=0.0)


def invalid_payload(job: JobView, error: ValidationError, *, now: str) -> PhaseChange:
    """Return the dead letter of a job whose payload its handler's schema refuses."""
    failure = Failure(
        type="ValidationError",
        category=Category.VALIDATION,
        message=describe_validation_error(error),
        permanent=True,
        reason=Reason.INVALID_PAYLOAD,
    )
    return phase_change.fail(job, failure, now=now, jitter_sample=0.0)


def failed(
    job: JobView,
    error: BaseException,
    categories: CategoryMapping,
    *,
    now: str,
    jitter_sample: float,
) -> PhaseChange:
    """Return what becomes of a job whose handler raised, here or in a process of its own."""
    if isinstance(error, HandlerCrashedError):
        return crashed(job, describe_error(error), now=now, jitter_sample=jitter_sample)
    report = (
        error.report if isinstance(error, ReportedError) else to_error_report(error, categories)
    )
    if report.kind is ErrorKind.REFUSED:
        return result_refused(job, report.message, now=now)
    return phase_change.fail(
        job, _to_failure(job, report, jitter_sample), now=now, jitter_sample=jitter_sample
    )


def asks_to_park(error: BaseException) -> bool:
    """Return whether a handler, here or in a process of its own, has ended to be parked."""
    return is_park(error)


def crashed(job: JobView, message: str, *, now: str, jitter_sample: float) -> PhaseChange:
    """Return what becomes of a job whose handler's own process died."""
    return phase_change.crash(
        job, Reason.HANDLER_CRASHED, message, now=now, jitter_sample=jitter_sample
    )


def stopped(
    job: JobView, why: Stop, *, refusal: str = "", detail: str = "", now: str, jitter_sample: float
) -> PhaseChange | None:
    """Return what becomes of a job whose attempt was stopped; None: it is no longer ours.

    `detail` is what the attempt was waiting for when its time ran out, if not for its handler.
    """
    match why:
        case Stop.REFUSED:
            return result_refused(job, refusal, now=now)
        case Stop.CANCELLED:
            return phase_change.cancel_running_job(job, "cancelled while running", now=now)
        case Stop.PAST_DEADLINE:
            message = phase_change.deadline_message(job) + (f": {detail}" if detail else "")
            reason = Reason.DEADLINE_EXCEEDED
            return phase_change.cancel_running_job(job, message, now=now, reason=reason)
        case Stop.TIMED_OUT:
            return phase_change.fail(
                job, _timeout_failure(job, detail), now=now, jitter_sample=jitter_sample
            )
        case Stop.DRAINING:
            message = "the worker is shutting down"
            return phase_change.release(
                job, Reason.RELEASED, message, now=now, jitter_sample=jitter_sample
            )
        case Stop.FENCED:
            return None


def _timeout_failure(job: JobView, detail: str) -> Failure:
    limit = (job.effective or BUILT_IN_POLICY).execution_timeout_seconds
    return Failure(
        type="ExecutionTimeout",
        category=Category.TIMEOUT,
        message=f"the attempt ran longer than {limit} s" + (f": {detail}" if detail else ""),
        reason=Reason.EXECUTION_TIMEOUT,
    )


def _to_failure(job: JobView, report: ErrorReport, jitter_sample: float) -> Failure:
    after, reason = None, None
    if report.kind is ErrorKind.RETRY:
        # Retried whatever the policy says about its category: so the delay is always given.
        backoff = retry_delay(job.effective or BUILT_IN_POLICY, job.retries, jitter_sample)
        after = backoff if report.retry_after is None else report.retry_after
        reason = Reason.RETRY_REQUESTED
    elif report.kind is ErrorKind.PAYLOAD:
        reason = Reason.INVALID_PAYLOAD
    permanent = report.kind in {ErrorKind.FAIL, ErrorKind.PAYLOAD, ErrorKind.KEPT}
    return Failure(report.type, report.category, report.message, after, permanent, reason)
