"""The HTTP session that kopf is given at login, and kopf's settings.

Some answers of the API server would end kopf, and so the process: a refused token, a type that is
not served just now, an error within a watch, and JSON that is nested deeper than Python's parser
can go, which any tenant may write. They are handled here, where each request and answer passes:
requests are signed each time and repeated, and what is nested too deeply is left out before kopf
reads it. Pages of lists are bounded in bytes, where kopf bounds them by number alone.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol, cast

import aiohttp
import kopf
import structlog

from asyncjob.deep_json import loads
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import JsonObject, items
from asyncjob.kube import ClusterAccess
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob.kube.paging import ListPager, PageTooLargeError
from asyncjob.kube.transport import parse_object
from asyncjob.line_splitter import LineSplitter
from asyncjob.names import GROUP, collection_path
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.kopf_text import LIST_AGAIN, is_error, readable_line, readable_page
from asyncjob_operator.kube.preflight import not_installed
from asyncjob_operator.telemetry.logs import LogThrottle

log = structlog.get_logger()

MAX_RETRY_BACKOFF: Final = 5.0
"""Longest pause in seconds between tries of a request that is refused, or whose type is not served.
"""

CONNECT_SECONDS: Final = 5.0
"""Linux sends the first packet of a connection again after 1 and 3 s: two may be lost."""

IDLE_SECONDS: Final = 1.0
"""Seconds without an event after which kopf ends its task for an object; its default is 5."""

MAX_LOGGED: Final = 300
"""Bytes of an error that are logged."""


@dataclass(frozen=True, slots=True)
class WatchedCollection:
    """One resource in one namespace, or in all (None)."""

    resource: str
    namespace: str | None


class WatchListener(Protocol):
    """Learns of the progress and the lists of kopf's watches, which kopf itself does not report.

    The operator is one. A protocol, because requests and answers lie in a layer far below it.
    """

    def on_watch_progress(self, watched: WatchedCollection) -> None:
        """Record that a watch has received something, a bookmark included, or a list."""

    def on_relist(self, watched: WatchedCollection) -> None:
        """React to a new list by kopf, which does not report what was deleted before it."""


class KopfSession:
    """HTTP for kopf under the operator's own identity."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        self._watched: dict[str, WatchedCollection] = {}
        self._pagers: dict[WatchedCollection, ListPager] = {}
        self._open: dict[WatchedCollection, aiohttp.ClientResponse] = {}
        self._listener: WatchListener | None = None
        self._http: aiohttp.ClientSession | None = None
        self._throttle = LogThrottle(monotonic)

    def follow(
        self,
        listener: WatchListener,
        resources: tuple[str, ...],
        namespaces: tuple[str | None, ...],
    ) -> None:
        """Tell `listener` of the watches of these resources in these namespaces."""
        self._listener = listener
        self._watched = {
            collection_path(namespace, resource): WatchedCollection(resource, namespace)
            for resource in resources
            for namespace in namespaces
        }

    def sign_in(self) -> kopf.AiohttpSession:
        """Return what a login handler returns."""
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._access.ssl_context),
            middlewares=[self._send],
            response_class=_KopfResponse,
            read_bufsize=2**18,
            proxy=self._access.proxy,
        )
        return kopf.AiohttpSession(
            server=self._access.host,
            aiohttp_session=self._http,
            default_namespace=self._access.namespace,
        )

    async def close(self) -> None:
        """Close what kopf has left open, as it does when it is cancelled."""
        if self._http is not None:
            await self._http.close()

    def restart(self, resource: str) -> None:
        """Break off the watches of a resource: kopf opens them again where they were."""
        for watched, response in list(self._open.items()):
            if watched.resource == resource:
                response.close()

    async def _send(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        _end_if_cancelled()
        watched = self._watched.get(request.url.path)
        if watched is None:
            return await self._send_until_accepted(request, handler, None)
        if "watch" in request.url.query:
            return await self._watch(request, handler, watched)
        return await self._list(request, handler, watched)

    async def _watch(
        self,
        request: aiohttp.ClientRequest,
        handler: aiohttp.ClientHandlerType,
        watched: WatchedCollection,
    ) -> aiohttp.ClientResponse:
        response = await self._send_until_accepted(request, handler, watched)
        if response.status == HTTPStatus.GONE:
            response.close()  # kopf would end; within a watch the same makes it list again
            response.status = HTTPStatus.OK
            response.content = cast("aiohttp.StreamReader", _ExpiredWatch())
        elif response.status == HTTPStatus.OK:
            tell = partial(self._required_listener.on_watch_progress, watched)
            tell()
            self._open[watched] = response
            body = _ReadableLines(response.content, response.url.path, tell)
            response.content = cast("aiohttp.StreamReader", body)
        return response

    async def _list(
        self,
        request: aiohttp.ClientRequest,
        handler: aiohttp.ClientHandlerType,
        watched: WatchedCollection,
    ) -> aiohttp.ClientResponse:
        """Limit the page that is asked for, so that the answer is not too large."""
        is_first_page = "continue" not in request.url.query
        listed_before = watched in self._pagers
        if is_first_page:
            self._pagers[watched] = ListPager()
        pager = self._pagers[watched]
        while True:
            request.url = request.url.update_query(limit=pager.params["limit"])
            response = await self._send_until_accepted(request, handler, watched)
            if response.status == HTTPStatus.GONE:
                response.close()  # kopf would end; this makes it start the list again
                raise aiohttp.ClientPayloadError("the list has expired")
            if response.status != HTTPStatus.OK:
                return response
            body = await _read_body(response, pager.max_bytes)
            if body is not None:
                break
            pager.shrink_after(PageTooLargeError("a page of a list is too large"))
        page = readable_page(body)
        pager.record_page(page, len(items(page, "items")), len(body))
        cast("_KopfResponse", response).page = page
        self._required_listener.on_watch_progress(watched)
        if is_first_page and listed_before:
            # Not sooner: the first page sets the list's moment.
            self._required_listener.on_relist(watched)
        return response

    async def _send_until_accepted(
        self,
        request: aiohttp.ClientRequest,
        handler: aiohttp.ClientHandlerType,
        watched: WatchedCollection | None,
    ) -> aiohttp.ClientResponse:
        """Send until the answer is one that kopf can bear."""
        backoff = ExponentialBackoff(cap=MAX_RETRY_BACKOFF)
        response = await self._send_once(request, handler)
        while _is_repeated(response.status, watched):
            await self._report(response, watched)
            response.close()
            if response.status == HTTPStatus.UNAUTHORIZED:
                await self._reload_credentials()
            await asyncio.sleep(backoff.next_delay())
            response = await self._send_once(request, handler)
        return response

    async def _send_once(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        request.headers.update(await self._access.headers())
        if self._access.server_hostname:
            request.server_hostname = self._access.server_hostname
        return await handler(request)

    @property
    def _required_listener(self) -> WatchListener:
        if self._listener is None:
            raise RuntimeError("no listener is set for the watches")
        return self._listener

    async def _report(
        self, response: aiohttp.ClientResponse, watched: WatchedCollection | None
    ) -> None:
        """Log what is wrong and what to do, once a minute."""
        if watched is not None and response.status == HTTPStatus.NOT_FOUND:
            wrong = not_installed([f"{watched.resource}.{GROUP}"])
        elif watched is not None and response.status == HTTPStatus.FORBIDDEN:
            wrong = f"no permission to see {watched.resource}.{GROUP}"
        else:
            wrong = "the API server refuses the operator's credentials"
        namespace = watched.namespace if watched else None
        if self._throttle.allow(f"{wrong} {namespace}"):
            answer = parse_object(await response.read())
            log.error(wrong, namespace=namespace, answer=answer.get("message", ""))

    async def _reload_credentials(self) -> None:
        try:
            await self._access.reload()
        except AsyncJobError as error:
            log.warning("credentials not readable", error=str(error))


def _end_if_cancelled() -> None:
    """Raise CancelledError in a task that was to end and has not.

    kopf swallows the cancellation of a watch that it begins again in the same moment, as after an
    error of the API server. It would go on, and the process, which waits for it, would never end.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _is_repeated(status: int, watched: WatchedCollection | None) -> bool:
    """Return whether kopf would end, or report an error each time, for what may yet be mended."""
    if status == HTTPStatus.UNAUTHORIZED:
        return True
    return watched is not None and status in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}


async def _read_body(response: aiohttp.ClientResponse, max_bytes: int | None) -> bytes | None:
    """Return the body, or None where it is too large."""
    body = bytearray()
    while chunk := await response.content.readany():
        body += chunk
        if max_bytes is not None and len(body) > max_bytes:
            response.close()
            return None
    return bytes(body)


class _KopfResponse(aiohttp.ClientResponse):
    """An answer whose JSON may be of any depth; of what is watched, `page` is what kopf reads."""

    page: JsonObject | None = None

    async def json(self, **_: Any) -> Any:
        """Return the page; of another answer the body, with null in place of what is too deep."""
        page, self.page = self.page, None  # kopf may keep the answer longer than the page
        return loads(await self.read()) if page is None else page


class _ExpiredWatch:
    """The body of a watch that ends at once, because its version has expired."""

    async def iter_chunked(self, _size: int) -> AsyncGenerator[bytes]:
        """Yield the one line after which kopf lists again."""
        yield LIST_AGAIN + b"\n"


class _ReadableLines:
    """The body of a watch, each line of which kopf can parse."""

    def __init__(
        self, body: aiohttp.StreamReader, path: str, on_progress: Callable[[], None]
    ) -> None:
        self._body = body
        self._path = path
        self._on_progress = on_progress

    async def iter_chunked(self, _size: int) -> AsyncGenerator[bytes]:
        """Yield whole lines, as they come; a line that breaks off comes again in the next watch."""
        splitter = LineSplitter()
        while chunk := await self._body.readany():
            self._on_progress()
            for line in splitter.feed(chunk):
                if is_error(line):
                    log.info(
                        "watch interrupted",
                        path=self._path,
                        answer=line[:MAX_LOGGED].decode(errors="replace"),
                    )
                if line:
                    yield readable_line(line) + b"\n"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)


class EndlessBackoffs:
    """Backoffs that never run out: kopf gives up, and exits, at the end of a finite list."""

    def __iter__(self) -> Iterator[float]:
        backoff = ExponentialBackoff()
        while True:
            yield backoff.next_delay()


class NoProgressStorage(kopf.ProgressStorage):
    """Keeps nothing: events have no progress."""

    def fetch(self, **_: object) -> None:
        """Return nothing."""

    def store(self, **_: object) -> None:
        """Store nothing."""

    def purge(self, **_: object) -> None:
        """Remove nothing."""

    def touch(self, **_: object) -> None:
        """Touch nothing."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """Return the essence itself, not a deep copy."""
        return essence


class NoDiffBaseStorage(kopf.DiffBaseStorage):
    """Keeps nothing: nobody asks what has changed."""

    def build(self, **_: object) -> kopf.BodyEssence:
        """Return an empty essence, not a deep copy of the object."""
        return kopf.BodyEssence()

    def fetch(self, **_: object) -> None:
        """Return nothing."""

    def store(self, **_: object) -> None:
        """Store nothing."""


def watch_only(settings: kopf.OperatorSettings) -> None:
    """Set kopf to watch, to survive outages, and to write nothing."""
    settings.process.ultimate_exiting_timeout = None
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.queueing.worker_limit = None
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.networking.error_backoffs = EndlessBackoffs()
    settings.networking.connect_timeout = CONNECT_SECONDS
    settings.persistence.progress_storage = NoProgressStorage()
    settings.persistence.diffbase_storage = NoDiffBaseStorage()
