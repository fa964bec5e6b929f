"""The handler `http`: sends the request, follows redirects, reads the response.

Each request, redirected ones too, is checked against the allow-list.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import aiohttp

from asyncjob import Fail, JobContext
from asyncjob import __version__ as version
from asyncjob.app import Category
from asyncjob_worker.builtin.errors import TimedOutError, UnreachableError
from asyncjob_worker.builtin.http_allowlist import HostAllowList, HostRefusedError
from asyncjob_worker.builtin.http_request import (
    REDIRECTS,
    HttpAnswer,
    HttpCall,
    Request,
    contains_status,
    first_request,
    redirected,
)
from asyncjob_worker.builtin.http_response import build_answer, check_status, excerpt
from asyncjob_worker.builtin.model import Head

AGENT = f"asyncjob-worker/{version}"
MAX_REDIRECTS = 5
CHUNK_BYTES = 16 * 1024
EXCERPT_LENGTH = 500


def http_handler(hosts: HostAllowList) -> Callable[[JobContext, HttpCall], Awaitable[HttpAnswer]]:
    """Return the handler that calls the hosts of this list."""

    async def http(job: JobContext, call: HttpCall) -> HttpAnswer:
        """Call a URL and return its answer if the status is expected."""
        request = first_request(call, job.info, AGENT)
        with _translate_errors(request.shown, call.timeout_seconds):
            async with asyncio.timeout(call.timeout_seconds), _session() as session:
                return await HttpExchange(call, hosts, session).run(request)

    return http


class HttpExchange:
    """One call of the handler, with its redirects."""

    def __init__(
        self, call: HttpCall, hosts: HostAllowList, session: aiohttp.ClientSession
    ) -> None:
        self._call = call
        self._hosts = hosts
        self._session = session

    async def run(self, request: Request) -> HttpAnswer:
        """Return the answer if its status is expected; else raise the error of the attempt."""
        for _ in range(1 + MAX_REDIRECTS):
            async with self._send(request) as response:
                location = self._location(response)
                if location is None:
                    return await self._read(request, response)
                request = _next_request(request, response.status, location)
        message = f"{request.shown}: more than {MAX_REDIRECTS} redirects"
        raise Fail(message, category=Category.VALIDATION)

    def _send(self, request: Request) -> "aiohttp.client._RequestContextManager":
        """Send one request; all go through here, so that all are checked against the list."""
        try:
            self._hosts.check(request.url)
        except HostRefusedError as refused:
            raise Fail(str(refused), category=Category.PERMISSION) from refused
        return self._session.request(
            request.method,
            request.url,
            headers=request.headers,
            data=request.body,
            allow_redirects=False,
        )

    def _location(self, response: aiohttp.ClientResponse) -> str | None:
        """Return where the response redirects to; None if it is the answer."""
        if not self._call.follow_redirects or response.status not in REDIRECTS:
            return None
        expected = contains_status(self._call.expected_status, response.status)
        return None if expected else response.headers.get("Location")

    async def _read(self, request: Request, response: aiohttp.ClientResponse) -> HttpAnswer:
        limit = self._call.max_body_bytes
        body = Head(max(limit, EXCERPT_LENGTH))
        async for chunk in response.content.iter_chunked(CHUNK_BYTES):
            body.add(chunk)
            if body.is_truncated:
                break
        answer = build_answer(
            response.status,
            str(response.url),
            response.headers,
            body,
            limit=limit,
            size=_body_size(response, body),
        )
        body_excerpt = excerpt(body, response.headers.get("Content-Type", ""), EXCERPT_LENGTH)
        check_status(self._call, answer, request.shown, body_excerpt, datetime.now(UTC))
        return answer


def _next_request(request: Request, status: int, location: str) -> Request:
    try:
        return redirected(request, status, location)
    except ValueError as error:
        message = f"{request.shown}: its redirect is not followed: {error}"
        raise Fail(message, category=Category.VALIDATION) from error


def _body_size(response: aiohttp.ClientResponse, body: Head) -> int | None:
    if not body.is_truncated:
        return body.size
    return None if "Content-Encoding" in response.headers else response.content_length


def _session() -> aiohttp.ClientSession:
    """Return a session without cookies that ignores proxies and netrc of the environment."""
    return aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None),
        trust_env=False,
    )


@contextmanager
def _translate_errors(shown: str, seconds: float) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise TimedOutError(f"{shown} took longer than {seconds:g} s") from error
    except (aiohttp.ClientError, ssl.SSLError, OSError) as error:
        raise UnreachableError(f"{shown}: {_error_text(error)}") from error


def _error_text(error: Exception) -> str:
    """Return the error's text; that of a response error would hold the URL with its query."""
    if isinstance(error, aiohttp.ClientResponseError):
        return f"{error.message or type(error).__name__} ({error.status})"
    return str(error) or type(error).__name__
