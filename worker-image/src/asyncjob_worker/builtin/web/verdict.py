"""What an unexpected status means for the attempt. Pure."""

import re
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus

from asyncjob.app import Category, Fail, Retry
from asyncjob_worker.builtin.errors import BuiltInError, RateLimitedError, ServiceFailedError
from asyncjob_worker.builtin.web.payload import HttpAnswer, HttpCall
from asyncjob_worker.builtin.web.request import REDIRECTS
from asyncjob_worker.builtin.web.retry_after import retry_after_seconds
from asyncjob_worker.builtin.web.statuses import contains_status

_FINAL_CATEGORIES: Mapping[int, Category] = {
    HTTPStatus.UNAUTHORIZED: Category.PERMISSION,
    HTTPStatus.FORBIDDEN: Category.PERMISSION,
    HTTPStatus.NOT_FOUND: Category.NOT_FOUND,
    HTTPStatus.GONE: Category.NOT_FOUND,
}


def check_status(
    call: HttpCall, answer: HttpAnswer, shown: str, body_excerpt: str, now: datetime
) -> None:
    """Return if the status is expected; else raise what ends the attempt.

    Its message has the request as `shown` and what the service `body_excerpt`.
    """
    if contains_status(call.expected_status, answer.status):
        return
    message = f"{shown} was answered {answer.status}{_redirect_hint(call, answer)}"
    message += f": {body_excerpt}" if body_excerpt else ""
    if not contains_status(call.retry_status, answer.status):
        raise Fail(message, category=_FINAL_CATEGORIES.get(answer.status, Category.VALIDATION))
    error = _retryable_error(answer.status, message)
    headers = answer.headers
    after = retry_after_seconds(headers.get("retry-after"), headers.get("date"), now)
    if after is None:
        raise error
    raise Retry(f"{message}; it asks to wait {after:g} s", after=after) from error


def _retryable_error(status: int, message: str) -> BuiltInError:
    limited = status == HTTPStatus.TOO_MANY_REQUESTS
    return RateLimitedError(message) if limited else ServiceFailedError(message)


def _redirect_hint(call: HttpCall, answer: HttpAnswer) -> str:
    if answer.status not in REDIRECTS or call.follow_redirects:
        return ""
    place = re.split(r"[?#]", answer.headers.get("location", "?"))[0] or "elsewhere"
    return f", a redirect to {place} (followRedirects is false)"
