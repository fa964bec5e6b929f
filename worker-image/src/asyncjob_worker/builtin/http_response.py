"""Turns a response into the result of the handler `http`, or into the attempt's error. Pure.

The result has a bounded size. The error of an unexpected status has the delay that Retry-After asks
for.
"""

import base64
import codecs
import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from asyncjob.app import Category, Fail, Retry
from asyncjob.free_json import FreeJsonError, normalize, replace_unencodable
from asyncjob.json_types import Json
from asyncjob_worker.builtin.errors import BuiltInError, RateLimitedError, ServiceFailedError
from asyncjob_worker.builtin.http_request import (
    REDIRECTS,
    BodyFormat,
    HttpAnswer,
    HttpCall,
    contains_status,
)
from asyncjob_worker.builtin.model import Head, fit_json

KEPT_HEADERS = (
    "cache-control",
    "content-language",
    "content-location",
    "content-type",
    "date",
    "etag",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "traceparent",
    "x-correlation-id",
    "x-request-id",
)
REJECTED_CHARSETS = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined"}
)
"""Codecs of Python that are not for text on the wire; punycode takes seconds for 64 KiB."""

MAX_HEADER = 1024
MAX_URL = 8192

MAX_RETRY_AFTER_SECONDS = 86_400.0

_FINAL_CATEGORIES: Mapping[int, Category] = {
    HTTPStatus.UNAUTHORIZED: Category.PERMISSION,
    HTTPStatus.FORBIDDEN: Category.PERMISSION,
    HTTPStatus.NOT_FOUND: Category.NOT_FOUND,
    HTTPStatus.GONE: Category.NOT_FOUND,
}


def build_answer(
    status: int, url: str, headers: Mapping[str, str], body: Head, *, limit: int, size: int | None
) -> HttpAnswer:
    """Return the result; `limit` bounds its body, in bytes as JSON.

    `size` is the length of the whole body in bytes, None if it is not known.
    """
    format_, value, is_cut = _decode_body(body, headers.get("content-type", ""), limit)
    return HttpAnswer(
        status=status,
        url=url[:MAX_URL],
        headers={
            key: replace_unencodable(headers[key][:MAX_HEADER])
            for key in KEPT_HEADERS
            if key in headers
        },
        body_format=format_,
        body=value,
        truncated=is_cut,
        size=size,
    )


def excerpt(body: Head, content_type: str, length: int) -> str:
    """Return the beginning of the body on one line, for a message; empty if it is not text."""
    text = _decode_text(body, content_type)
    return " ".join((text or "").split())[:length]


def _decode_body(body: Head, content_type: str, limit: int) -> tuple[BodyFormat, Json, bool]:
    if not body.size:
        return "none", None, False
    text = _decode_text(body, content_type)
    if text is None:
        return _as_base64(body, limit)
    if "json" in content_type and not body.is_truncated:
        try:
            return "json", normalize(json.loads(text), what="the body", max_bytes=limit), False
        except (ValueError, RecursionError, FreeJsonError):
            pass  # stored as the text it is
    kept = fit_json(text, limit + 2)
    return "text", kept, body.is_truncated or len(kept) < len(text)


def _as_base64(body: Head, limit: int) -> tuple[BodyFormat, Json, bool]:
    max_bytes = limit // 4 * 3
    return "base64", base64.b64encode(body.data[:max_bytes]).decode(), body.size > max_bytes


def _decode_text(body: Head, content_type: str) -> str | None:
    """Return the bytes decoded in their declared charset; None if they are not valid in it."""
    decoder = codecs.getincrementaldecoder(_charset(content_type))()
    try:
        return replace_unencodable(decoder.decode(body.data, final=not body.is_truncated))
    except ValueError:
        return None


def _charset(content_type: str) -> str:
    """Return the declared charset, or UTF-8 if it is not a charset of text.

    Python's codecs include others, such as zlib.
    """
    _, _, after = content_type.lower().partition("charset=")
    charset = after.partition(";")[0].strip(" \"'")
    try:
        b" ".decode(charset, "ignore")
        return "utf-8" if codecs.lookup(charset).name in REJECTED_CHARSETS else charset
    except (LookupError, ValueError):
        return "utf-8"


def check_status(
    call: HttpCall, answer: HttpAnswer, shown: str, body_excerpt: str, now: datetime
) -> None:
    """Return if the status is expected; else raise the error of the attempt.

    Fail, a retryable error, or Retry if the service asks to wait. The message has the request as
    `shown`, and the service's text as `body_excerpt`.
    """
    if contains_status(call.expected_status, answer.status):
        return
    message = f"{shown} was answered {answer.status}{_redirect_hint(call, answer)}"
    message += f": {body_excerpt}" if body_excerpt else ""
    if not contains_status(call.retry_status, answer.status):
        raise Fail(message, category=_FINAL_CATEGORIES.get(answer.status, Category.VALIDATION))
    error = _retryable_error(answer.status, message)
    headers = answer.headers
    delay = retry_after_seconds(headers.get("retry-after"), headers.get("date"), now)
    if delay is None:
        raise error
    raise Retry(f"{message}; it asks to wait {delay:g} s", after=delay) from error


def _retryable_error(status: int, message: str) -> BuiltInError:
    limited = status == HTTPStatus.TOO_MANY_REQUESTS
    return RateLimitedError(message) if limited else ServiceFailedError(message)


def _redirect_hint(call: HttpCall, answer: HttpAnswer) -> str:
    if answer.status not in REDIRECTS or call.follow_redirects:
        return ""
    location = re.split(r"[?#]", answer.headers.get("location", "?"))[0] or "elsewhere"
    return f", a redirect to {location} (followRedirects is false)"


def retry_after_seconds(value: str | None, date: str | None, now: datetime) -> float | None:
    """Return the seconds that Retry-After asks for, 0 to a day; None if it cannot be read.

    It is a number of seconds or a date. A date is counted from the answer's own Date, so that it
    does not matter whether the clocks agree, and from `now` if there is none.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:10])
    elif (retry_at := _parse_date(text)) is not None:
        seconds = (retry_at - (_parse_date(date) or now)).total_seconds()
    else:
        return None
    return math.ceil(min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS))


def _parse_date(text: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError, TypeError):  # such as a year of eleven digits
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
