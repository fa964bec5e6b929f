"""`ErrorReport`.

What a handler's error means, as plain values that can cross from one process to another.

Made where the error's class is known; decided upon where the job is held. Knows nothing of the job.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pydantic import ValidationError

from asyncjob.app.errors import (
    Fail,
    HandlerExitError,
    KeptResultError,
    Retry,
    SignalInvalid,
    SignalTimeout,
    StepError,
    categorize,
    is_valid_category,
)
from asyncjob.app.handler import describe_validation_error
from asyncjob.app.park_gate import Parked
from asyncjob.app.waits import is_park
from asyncjob.errors import AsyncJobError
from asyncjob.free_json import FreeJsonError, replace_unencodable
from asyncjob.lifecycle.policy import Category

CategoryMapping = Mapping[type[BaseException], str]


class ErrorKind(StrEnum):
    """What an error asks for."""

    FAILURE = "failure"
    RETRY = "retry"
    FAIL = "fail"
    REFUSED = "refused"
    PAYLOAD = "payload"
    PARKED = "parked"
    CANCELLED = "cancelled"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """One error of a handler. `retry_after` is the delay in seconds that a retry asks for."""

    kind: ErrorKind
    type: str
    category: str
    message: str
    retry_after: float | None = None


class ReportedError(Exception):
    """An error of a handler that ran in another process; `reported` makes what is raised of it."""

    def __init__(self, report: ErrorReport) -> None:
        super().__init__(report.message)
        self.report = report


def reported(report: ErrorReport) -> BaseException:
    """Return what to raise for an error of a handler that ran in another process.

    What is no Exception in the handler is none around it either: `except Exception` of a middleware
    sees neither a park, nor a stop, nor a kept result that cannot be taken.
    """
    if report.kind is ErrorKind.PARKED:
        return Parked(report.message)
    if report.kind is ErrorKind.KEPT:
        return KeptResultError(report.message)
    if report.kind is ErrorKind.CANCELLED:
        error = HandlerExitError(report.message)
        error.__cause__ = asyncio.CancelledError(report.message)
        return error
    return ReportedError(report)


class HandlerCrashedError(AsyncJobError):
    """The handler's own process died."""

    code = "HandlerCrashed"


def to_error_report(
    error: BaseException, categories: CategoryMapping, *, memory_mib: int | None = None
) -> ErrorReport:
    """Return what an error of a handler means; of a group of one, what that one means.

    `memory_mib` is the limit of its process, which a MemoryError without words is told by.
    """
    if (end := _end_of_attempt(error)) is not None:
        return end
    error = unwrap_single(error)
    kind, message = replace_unencodable(type(error).__name__), describe_error(error)
    if isinstance(error, MemoryError) and memory_mib is not None and not error.args:
        message = f"out of memory: memory_mib={memory_mib}"
    if isinstance(error, FreeJsonError):
        return ErrorReport(ErrorKind.REFUSED, kind, Category.VALIDATION, message)
    if isinstance(error, Retry):
        category = error.category or ""
        if not is_valid_category(category):
            category = categorize(error.__cause__ or error, categories)
        return ErrorReport(ErrorKind.RETRY, kind, category, message, error.after)
    if isinstance(error, Fail):
        category = error.category if is_valid_category(error.category) else Category.INTERNAL
        return ErrorReport(ErrorKind.FAIL, kind, category, message)
    if isinstance(error, StepError | SignalInvalid | SignalTimeout):
        late = isinstance(error, SignalTimeout)
        category = Category.TIMEOUT if late else Category.VALIDATION
        return ErrorReport(ErrorKind.FAIL, kind, category, message)
    cancelled = isinstance(error, HandlerExitError) and error.is_cancellation
    what = ErrorKind.CANCELLED if cancelled else ErrorKind.FAILURE
    return ErrorReport(what, kind, categorize(error, categories), message)


def _end_of_attempt(error: BaseException) -> ErrorReport | None:
    """Return the report of what ends the attempt and is no Exception, if it is that."""
    if is_park(error):
        return ErrorReport(ErrorKind.PARKED, "Parked", Category.INTERNAL, "the job is parked")
    if (kept := _kept_result_error(error)) is not None:
        return ErrorReport(ErrorKind.KEPT, "StepError", Category.VALIDATION, str(kept))
    return None


def _kept_result_error(error: BaseException) -> KeptResultError | None:
    """Return the kept result that cannot be taken, alone or among the errors of a task group."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(_kept_result_error, error.exceptions)), None)
    return error if isinstance(error, KeptResultError) else None


def unwrap_single(error: BaseException) -> BaseException:
    """Return the one error of a group: a task group wraps whatever one of its tasks raises."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def to_payload_error_report(error: ValidationError) -> ErrorReport:
    """Return what the refusal of a payload by its handler's schema means."""
    return ErrorReport(
        ErrorKind.PAYLOAD,
        "ValidationError",
        Category.VALIDATION,
        replace_unencodable(describe_validation_error(error)),
    )


def describe_error(error: BaseException) -> str:
    """Return an error's message as text that can be stored, whatever its class makes of it."""
    try:
        return replace_unencodable(str(error)) or type(error).__name__
    except Exception:  # noqa: BLE001  # `__str__` of a handler's own error may raise anything
        return type(error).__name__
