"""What handlers raise.

Errors of child jobs, the signals `Retry` and `Fail`, and the categories of errors that `retryOn`
and `noRetryOn` look at.
"""

import asyncio
import concurrent.futures
import math
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pydantic import ValidationError

from asyncjob.errors import AsyncJobError
from asyncjob.free_json import FreeJsonError
from asyncjob.lifecycle.policy import Category


def describe_validation_error(error: ValidationError) -> str:
    """Return a schema error by field, on one line."""
    parts = (
        f"{'.'.join(str(step) for step in item['loc']) or 'payload'}: {item['msg']}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    )
    return "; ".join(parts)


class SubmitError(AsyncJobError):
    """A child job cannot be submitted, and trying again does not help."""

    code = "submit-refused"


class SubmitForbiddenError(SubmitError):
    """The worker may not create jobs."""

    code = "forbidden"


class SubmitRefusedError(SubmitError):
    """A child job is not what a job has to be, or too large."""


class SubmitConflictError(SubmitError):
    """The name of a child job is taken by a job with other content."""

    code = "job-exists"


class AttemptOverError(SubmitError):
    """The attempt has been told to stop: it submits nothing more and waits for nothing."""

    code = "attempt-over"


@contextmanager
def ending_as_a_stop() -> Iterator[None]:
    """Have an attempt that is over end the handler as a stop does, by what is no Exception.

    So `except Exception` undoes nothing where the worker drains, in sync handlers too.
    """
    try:
        yield
    except (AttemptOverError, concurrent.futures.CancelledError) as error:
        raise asyncio.CancelledError(str(error) or "the attempt is over") from error


class ChildFailedError(AsyncJobError):
    """A child job has not succeeded."""

    code = "child-failed"


class ChildGoneError(AsyncJobError):
    """A child job has been deleted."""

    code = "child-gone"


class StepError(AsyncJobError):
    """A step cannot be taken as it is written; trying again does not help."""

    code = "step-invalid"


class KeptResultError(BaseException):
    """The kept result of a step cannot be taken; `status.error` shows it as a StepError.

    It is no Exception: what `except Exception` undoes must not be undone because a step that was
    taken has a result that the code of today does not understand.
    """


class StepRefusedError(StepError, FreeJsonError):
    """The job cannot keep the result of a step."""

    code = "step-refused"


class SignalTimeout(AsyncJobError):  # noqa: N818  # read as what has happened
    """A signal has not come in time; trying again does not help, a redrive does."""

    code = "signal-timeout"


class SignalInvalid(AsyncJobError):  # noqa: N818  # read as what has happened
    """The payload of a signal does not fit its type, and never will: wait for another name."""

    code = "signal-invalid"


_TIMEOUT: Final = "Timeout"
_NETWORK: Final = "Network"

LIBRARY_CATEGORIES: Final[Mapping[str, str]] = {
    "aiohttp.client_exceptions.ServerTimeoutError": _TIMEOUT,
    "aiohttp.client_exceptions.ClientConnectionError": _NETWORK,
    "aiohttp.client_exceptions.ClientPayloadError": _NETWORK,
    "httpx.TimeoutException": _TIMEOUT,
    "httpx.TransportError": _NETWORK,
    "httpcore.TimeoutException": _TIMEOUT,
    "httpcore.NetworkError": _NETWORK,
    "requests.exceptions.Timeout": _TIMEOUT,
    "requests.exceptions.ConnectTimeout": _TIMEOUT,
    "requests.exceptions.ConnectionError": _NETWORK,
    "requests.exceptions.ChunkedEncodingError": _NETWORK,
    "urllib3.exceptions.TimeoutError": _TIMEOUT,
    "urllib3.exceptions.NewConnectionError": _NETWORK,
    "urllib3.exceptions.ProtocolError": _NETWORK,
    "urllib3.exceptions.MaxRetryError": _NETWORK,
    "botocore.exceptions.ConnectTimeoutError": _TIMEOUT,
    "botocore.exceptions.ReadTimeoutError": _TIMEOUT,
    "botocore.exceptions.EndpointConnectionError": _NETWORK,
    "botocore.exceptions.ConnectionClosedError": _NETWORK,
    "redis.exceptions.TimeoutError": _TIMEOUT,
    "redis.exceptions.ConnectionError": _NETWORK,
}
"""Class path → category. Subclasses go by the nearest base class, like all others."""


BUILT_IN_CATEGORIES: Mapping[type[BaseException], str] = {
    TimeoutError: Category.TIMEOUT,
    socket.gaierror: Category.NETWORK,
    ConnectionError: Category.NETWORK,
    PermissionError: Category.PERMISSION,
    FileNotFoundError: Category.NOT_FOUND,
    LookupError: Category.NOT_FOUND,
    ValidationError: Category.VALIDATION,
    ValueError: Category.VALIDATION,
    SubmitForbiddenError: Category.PERMISSION,
    SubmitRefusedError: Category.VALIDATION,
    SubmitConflictError: Category.VALIDATION,
    ChildFailedError: Category.DEPENDENCY,
    ChildGoneError: Category.DEPENDENCY,
}


MAX_CATEGORY_LENGTH = 64


def is_valid_category(category: str) -> bool:
    """Return whether a category of the app's own can be stored."""
    return 0 < len(category) <= MAX_CATEGORY_LENGTH and category.isprintable()


def categorize(error: BaseException, app_categories: Mapping[type[BaseException], str]) -> str:
    """Return the category of an error: the app's own mapping first, the nearest base class wins."""
    for kind in type(error).__mro__:
        category = (
            app_categories.get(kind)
            or BUILT_IN_CATEGORIES.get(kind)
            or LIBRARY_CATEGORIES.get(_class_path(kind))
        )
        if category:
            return str(category)
    return Category.INTERNAL.value


def _class_path(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


_CANCELS: Final = (asyncio.CancelledError, concurrent.futures.CancelledError)


class HandlerExitError(Exception):
    """The handler tried to end the process or its own task; `status.error` shows this name."""

    @property
    def is_cancellation(self) -> bool:
        """Whether it stands for a CancelledError, which is no Exception where it is caught."""
        return isinstance(self.__cause__, _CANCELS)


class Retry(Exception):  # noqa: N818  # a signal, read as a verb: `raise Retry(after=30)`
    """Try again later, whatever the policy says about the category; it spends a retry.

    `after` is in seconds; None takes the policy's backoff. `category` is what `status.error` shows,
    None that of the exception it was raised from.
    """

    def __init__(
        self,
        message: str = "the handler asked for a retry",
        *,
        after: float | None = None,
        category: str | None = None,
    ) -> None:
        super().__init__(message)
        self.category = category
        self.after = after if after is None or math.isfinite(after) else None


class Fail(Exception):  # noqa: N818  # a signal, read as a verb: `raise Fail("no such user")`
    """Give up at once: the job becomes a dead letter without further retries."""

    def __init__(self, message: str, *, category: str = Category.INTERNAL) -> None:
        super().__init__(message)
        self.category = category
