"""What is sent: the first request of a call, and the next one after a redirect. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import orjson
from multidict import CIMultiDict
from yarl import URL

from asyncjob.app import JobInfo
from asyncjob_worker.builtin.web.hosts import parse_url
from asyncjob_worker.builtin.web.payload import HttpCall

REDIRECTS = frozenset({301, 302, 303, 307, 308})
CROSS_ORIGIN_HEADERS = frozenset(
    {"accept", "accept-language", "content-type", "idempotency-key", "traceparent", "user-agent"}
)
"""What a redirect to another origin is sent along; the job's other headers may be secrets."""


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
    """Return what the call asks for, and the headers that every call of the job has."""
    headers: CIMultiDict[str] = CIMultiDict(call.headers)
    headers.setdefault("User-Agent", agent)
    # The same in every attempt: a service that knows the header does the work once.
    headers.setdefault("Idempotency-Key", job.uid)
    if job.traceparent:
        headers.setdefault("traceparent", job.traceparent)
    body = None if call.body is None else _encode_body(call, headers)
    return Request(call.method, parse_url(call.url), headers, body)


def redirected(request: Request, status: int, location: str) -> Request:
    """Return the request that a redirect asks for; raises ValueError for one that cannot be."""
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
    """As browsers do and the standard allows; a DELETE moved elsewhere stays one."""
    return (status == HTTPStatus.SEE_OTHER and method != "HEAD") or (
        status in {HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND} and method == "POST"
    )


def _encode_body(call: HttpCall, headers: CIMultiDict[str]) -> bytes:
    if isinstance(call.body, str):
        headers.setdefault("Content-Type", "text/plain; charset=utf-8")
        return call.body.encode()
    headers.setdefault("Content-Type", "application/json")
    return orjson.dumps(call.body)
