"""Payload and result of the handler `http`, and the requests that it sends. Pure.

These are the first request of a call, and the next one after a redirect.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Literal

import orjson
from multidict import CIMultiDict
from pydantic import AfterValidator, Field, JsonValue, field_validator
from yarl import URL

from asyncjob.app import JobInfo
from asyncjob_worker.builtin.http_allowlist import parse_url
from asyncjob_worker.builtin.model import BuiltInModel

CONNECTION_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers of the connection, which jobs may not set: with a `Host` of its own a job could reach
another host than the one that was checked."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})
CROSS_ORIGIN_HEADERS = frozenset(
    {"accept", "accept-language", "content-type", "idempotency-key", "traceparent", "user-agent"}
)
"""Headers that are sent to another origin after a redirect; the job's others may be secrets."""

_RANGE = re.compile(r"([1-5]\d\d)(?:-([1-5]\d\d))?", re.ASCII)
_CLASS = re.compile("([1-5])xx", re.IGNORECASE)

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,8192}")


def statuses_of(text: int | str) -> range:
    """Return the statuses that one entry means; raises ValueError."""
    if match := _CLASS.fullmatch(str(text)):
        first = 100 * int(match[1])
        return range(first, first + 100)
    match = _RANGE.fullmatch(str(text))
    if match is None:
        raise ValueError(f'{text!r} is not a status: write 201, "200-204" or "2xx"')
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise ValueError(f"{text!r} is a reversed range")
    return range(first, last + 1)


def _check_status(text: int | str) -> int | str:
    statuses_of(text)
    return text


Statuses = Annotated[
    tuple[Annotated[int | str, AfterValidator(_check_status)], ...], Field(max_length=100)
]


def contains_status(statuses: Statuses, status: int) -> bool:
    """Return whether a status is among these."""
    return any(status in statuses_of(entry) for entry in statuses)


BodyFormat = Literal["none", "json", "text", "base64"]


def _check_name(name: str) -> str:
    if not _TOKEN.fullmatch(name):
        raise ValueError("not a valid header name")
    if name.lower() in CONNECTION_HEADERS:
        raise ValueError("the worker sets this header itself")
    return name


def _check_value(value: str) -> str:
    if not _VALUE.fullmatch(value):
        raise ValueError("a header holds one line of at most 8192 Latin-1 characters")
    return value


HeaderName = Annotated[str, AfterValidator(_check_name)]
HeaderValue = Annotated[str, AfterValidator(_check_value)]


class HttpCall(BuiltInModel):
    """What to call, and what to expect."""

    url: str = Field(max_length=8192)
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict, max_length=64)
    body: JsonValue = None
    """A string is sent as it is, anything else as JSON; null means none."""

    expected_status: Statuses = ("2xx",)
    retry_status: Statuses = (408, 409, 423, 425, 429, "5xx")
    timeout_seconds: float = Field(default=30.0, gt=0, le=3600, allow_inf_nan=False)
    """For the whole call: every redirect and the body included."""

    follow_redirects: bool = False
    max_body_bytes: int = Field(default=64 * 1024, ge=0, le=192 * 1024)
    """How much of the answer's body to keep, counted as the JSON it is stored as."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, text: str) -> str:
        parse_url(text)
        return text


class HttpAnswer(BuiltInModel):
    """What came back."""

    status: int
    url: str
    """Where the answer came from, after redirects."""

    headers: dict[str, str]
    body_format: BodyFormat = "none"
    body: JsonValue = None
    truncated: bool = False
    size: int | None = None
    """Bytes of the whole body, uncompressed; null where it was cut and the length not announced."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None

    @property
    def shown(self) -> str:
        """The request for a message, without the query, which may hold secrets."""
        return f"{self.method} {self.url.with_query(None)}"


def first_request(call: HttpCall, job: JobInfo, agent: str) -> Request:
    """Return the request that a call asks for, with the headers that all calls have."""
    headers: CIMultiDict[str] = CIMultiDict(call.headers)
    headers.setdefault("User-Agent", agent)
    # The same in every attempt, so that a service that supports it does the work once.
    headers.setdefault("Idempotency-Key", job.uid)
    if job.traceparent:
        headers.setdefault("traceparent", job.traceparent)
    body = None if call.body is None else _encode_body(call, headers)
    return Request(call.method, parse_url(call.url), headers, body)


def redirected(request: Request, status: int, location: str) -> Request:
    """Return the request that a redirect asks for; raises ValueError if it is not followed."""
    url = parse_url(str(request.url.join(URL(location))))
    if request.url.scheme == "https" and url.scheme == "http":
        raise ValueError(f"it leads from https to {url.with_query(None)}")
    headers: CIMultiDict[str] = CIMultiDict(request.headers)
    if url.origin() != request.url.origin():
        headers = CIMultiDict(
            {k: v for k, v in headers.items() if k.lower() in CROSS_ORIGIN_HEADERS}
        )
    if not _becomes_get(request.method, status):
        return Request(request.method, url, headers, request.body)
    headers.popall("Content-Type", None)
    return Request("GET", url, headers, None)


def _becomes_get(method: str, status: int) -> bool:
    """Return whether a redirected request becomes a GET: as in browsers, so a DELETE does not."""
    return (status == HTTPStatus.SEE_OTHER and method != "HEAD") or (
        status in {HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND} and method == "POST"
    )


def _encode_body(call: HttpCall, headers: CIMultiDict[str]) -> bytes:
    if isinstance(call.body, str):
        headers.setdefault("Content-Type", "text/plain; charset=utf-8")
        return call.body.encode()
    headers.setdefault("Content-Type", "application/json")
    return orjson.dumps(call.body)
