"""Requests to the API server by verb: JSON in, JSON out, one error tree.

The answer to a write may never come. `UnknownOutcomeError` then says just that, and the caller
has to read again; nothing here repeats a write that may have taken effect. A body that is nested
too deeply to be written raises InvalidError, as if the API server had refused it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from functools import lru_cache
from types import TracebackType
from typing import Final, Self

import aiohttp

from asyncjob.deep_json import encode
from asyncjob.errors import ApiError, UnknownOutcomeError
from asyncjob.json_types import Json, JsonObject, as_object, items
from asyncjob.kube.access import ClusterAccess
from asyncjob.kube.pacing import TimeSlice
from asyncjob.kube.paging import PAGE_TIMEOUT_SECONDS, ListPager
from asyncjob.kube.transport import (
    KubeRequest,
    KubeTransport,
    Params,
    RequestObserver,
    ignore_send,
    parse_object,
    unobserved,
)

MERGE_PATCH_TYPE: Final = "application/merge-patch+json"
JSON_PATCH_TYPE: Final = "application/json-patch+json"
METADATA_TYPE: Final = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
"""For writes of whose answer nothing is used: the API server does not encode the whole object."""

METADATA_LIST_TYPE: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
"""For lists of which only names, uids and labels are used: objects without spec and status."""

_JSON: Final = "application/json"
_WRITES: Final = frozenset({"POST", "PUT", "PATCH"})


class KubeSession:
    """Requests and watches to one API server under one identity.

    `connections` bounds the requests at a time; each watch has a connection beside them.
    `field_manager` is constant per part, because each other name would grow managedFields.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        field_manager: str,
        connections: int = 32,
        observer: RequestObserver = unobserved,
    ) -> None:
        self.access = access
        self._field_manager = field_manager
        self._transport = KubeTransport(
            access, user_agent=field_manager, connections=connections, observer=observer
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    def server_time(self) -> float | None:
        """Return the API server's clock in epoch seconds, as its newest prompt answer told it.

        It is told in whole seconds, cut. None before the first answer, or if none told it.
        """
        if self._transport.server_date is None:
            return None
        text, came_at = self._transport.server_date
        then = _epoch_seconds(text)
        return None if then is None else then + asyncio.get_running_loop().time() - came_at

    async def get(self, path: str, params: Params | None = None) -> JsonObject:
        """Read one object, or one page of a collection."""
        return await self._transport.send(KubeRequest("GET", path, params or {}))

    async def create(
        self, path: str, body: Mapping[str, Json], params: Params | None = None
    ) -> JsonObject:
        """Create an object; raises AlreadyExistsError if its name is taken."""
        return await self._write("POST", path, body, _JSON, params)

    async def replace(self, path: str, body: Mapping[str, Json]) -> JsonObject:
        """Replace an object; conditional if the body carries a resourceVersion."""
        return await self._write("PUT", path, body, _JSON)

    async def merge_patch(
        self,
        path: str,
        body: Mapping[str, Json],
        params: Params | None = None,
        *,
        on_send: Callable[[], None] = ignore_send,
    ) -> JsonObject:
        """Merge into an object; conditional if the body carries a resourceVersion.

        `on_send` is called each time before the request is sent.
        """
        return await self._write("PATCH", path, body, MERGE_PATCH_TYPE, params, on_send=on_send)

    async def json_patch(
        self, path: str, operations: Sequence[JsonObject], *, accept: str = _JSON
    ) -> JsonObject:
        """Apply a JSON Patch; `accept` may ask for an answer of metadata only."""
        return await self._write("PATCH", path, operations, JSON_PATCH_TYPE, accept=accept)

    async def delete(self, path: str, body: Mapping[str, Json] | None = None) -> JsonObject:
        """Delete an object; the body may carry DeleteOptions with preconditions."""
        data = None if body is None else encode(body)
        return await self._transport.send(KubeRequest("DELETE", path, {}, data, _JSON))

    async def list(
        self, path: str, params: Params | None = None, *, accept: str = _JSON
    ) -> AsyncIterator[JsonObject]:
        """Read a collection in pages, object by object; raises ExpiredError if it took too long.

        Other tasks get their turn in between, however many objects there are.
        """
        turns = TimeSlice()
        async for page in self.pages(path, params, accept=accept):
            for item in items(page, "items"):
                yield as_object(item)
                await turns.yield_if_due()

    async def pages(
        self, path: str, params: Params | None = None, *, accept: str = _JSON
    ) -> AsyncIterator[JsonObject]:
        """Read a collection page by page: one consistent list, as of the first page's version.

        Pages are bounded in bytes (see `paging`). `accept` may ask for metadata only. Raises
        ExpiredError if it took too long.
        """
        paging = ListPager()
        while True:
            yield await self._next_page(path, params or {}, accept, paging)
            if not paging.has_more:
                return

    async def _next_page(
        self, path: str, params: Params, accept: str, paging: ListPager
    ) -> JsonObject:
        while True:
            request = KubeRequest(
                "GET",
                path,
                paging.request_params(params.items()),
                accept=accept,
                timeout_seconds=PAGE_TIMEOUT_SECONDS,
                max_bytes=paging.max_bytes,
            )
            try:
                body = await self.fetch(request)
            except ApiError as error:
                if not paging.shrink_after(error):
                    raise
                continue
            page = parse_object(body)
            if "items" not in page:  # taken for an empty list, it would mean that all are gone
                raise UnknownOutcomeError(f"answer to GET {path} is not a list: {body[:100]!r}")
            paging.record_page(page, len(items(page, "items")), len(body))
            return page

    async def send(self, request: KubeRequest) -> JsonObject:
        """Send a request as it is; a write gets the field manager's name."""
        return parse_object(await self.fetch(request))

    async def fetch(self, request: KubeRequest) -> bytes:
        """Send a request as it is, and return the answer's body unread."""
        if request.method in _WRITES:
            params = {"fieldManager": self._field_manager, **request.params}
            request = replace(request, params=params)
        return await self._transport.fetch(request)

    async def stream(self, path: str, params: Params, accept: str) -> aiohttp.ClientResponse:
        """Open a long answer, such as a watch; the caller closes it."""
        return await self._transport.open_stream(KubeRequest("GET", path, params, accept=accept))

    async def _write(
        self,
        method: str,
        path: str,
        body: Json,
        content_type: str,
        params: Params | None = None,
        *,
        accept: str = _JSON,
        on_send: Callable[[], None] = ignore_send,
    ) -> JsonObject:
        query = {"fieldManager": self._field_manager, **(params or {})}
        request = KubeRequest(
            method, path, query, encode(body), content_type, accept, on_send=on_send
        )
        return await self._transport.send(request)


@lru_cache(maxsize=8)
def _epoch_seconds(date: str) -> float | None:
    """Return a Date header as epoch seconds; the same text comes for a second on end."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None
