"""One watch of a collection: events as they come, until the server ends it.

The caller decides how to go on afterwards; an `ExpiredError` means to start from a new list.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import aiohttp
import orjson

from asyncjob.deep_json import loads
from asyncjob.errors import ApiError, UnknownOutcomeError
from asyncjob.json_types import JsonObject, as_object, child, text
from asyncjob.kube.pacing import TimeSlice
from asyncjob.kube.session import KubeSession
from asyncjob.kube.transport import Params, abort_response, error_from_watch_event
from asyncjob.line_splitter import LineSplitter

OBJECTS_TYPE: Final = "application/json"
TABLE_TYPE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"

MAX_SILENCE_SECONDS: Final = 120.0
"""A healthy server sends a bookmark about once a minute; longer silence is a dead connection."""

WATCH_TIMEOUT_SECONDS: Final = 590
"""How long the server is asked to keep a watch open. The reflectors of client-go ask for five to
ten minutes; a server that is not asked ends a watch after half an hour to an hour."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED or BOOKMARK, with the object or the one-row table."""

    type: str
    object: JsonObject

    @property
    def resource_version(self) -> str:
        """Return the version of the object, which is also where a later watch may go on."""
        return text(child(self.object, "metadata"), "resourceVersion")


async def watch(
    session: KubeSession,
    path: str,
    params: Params | None = None,
    *,
    table: bool = False,
    gather_seconds: float = 0.0,
) -> AsyncGenerator[WatchEvent]:
    """Watch a collection; without a `resourceVersion` it begins with all there is, as ADDED.

    `table` asks for printer columns instead of objects. After what has come at once, nothing more
    is read for `gather_seconds`: see `read_events`. Ends when the server closes; raises
    ExpiredError, UnknownOutcomeError and what else a request raises.
    """
    response = await open_watch(session, path, params, table=table)
    async with aclosing(read_events(response, gather_seconds)) as seen:
        async for event in seen:
            yield event


async def open_watch(
    session: KubeSession, path: str, params: Params | None = None, *, table: bool = False
) -> aiohttp.ClientResponse:
    """Open a watch; the caller closes it. Raises what a request raises.

    One of tables that begins with all there is has no bookmarks on an API server that has no tables
    to tell with them that this was all: Kubernetes 1.32 refuses such a watch.
    """
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(WATCH_TIMEOUT_SECONDS),
        **({"includeObject": "None"} if table else {}),
        **(params or {}),
    }
    try:
        return await session.stream(path, query, TABLE_TYPE if table else OBJECTS_TYPE)
    except ApiError as error:
        if error.status != HTTPStatus.NOT_ACCEPTABLE or not table:
            raise
    del query["allowWatchBookmarks"]
    return await session.stream(path, query, TABLE_TYPE)


async def read_events(
    response: aiohttp.ClientResponse, gather_seconds: float = 0.0
) -> AsyncGenerator[WatchEvent]:
    """Yield what an open watch tells, and close it.

    Of a flood, more is always there to be read: others have their turn in between all the same.
    With `gather_seconds` the events that come within that time are read together. The first after
    a pause comes at once. To wake up for each costs a process more than most events do.
    """
    turns = TimeSlice()
    try:
        async with aclosing(_read_lines(response, gather_seconds)) as lines:
            async for line in lines:
                event = _parse_event(line)
                if event.get("type") == "ERROR":
                    raise error_from_watch_event(child(event, "object"))
                yield WatchEvent(text(event, "type"), child(event, "object"))
                await turns.yield_if_due()
    finally:
        abort_response(response)


def _parse_event(line: bytes) -> JsonObject:
    try:
        return as_object(loads(line))
    except orjson.JSONDecodeError as error:
        raise UnknownOutcomeError(f"invalid JSON in watch: {line[:100]!r}") from error


async def _read_lines(
    response: aiohttp.ClientResponse, gather_seconds: float
) -> AsyncGenerator[bytes]:
    """Split the answer into lines of any length."""
    splitter = LineSplitter()
    while chunk := await _read_chunk(response):
        for line in splitter.feed(chunk):
            if line:
                yield line
        if gather_seconds:
            await asyncio.sleep(gather_seconds)


async def _read_chunk(response: aiohttp.ClientResponse) -> bytes:
    try:
        async with asyncio.timeout(MAX_SILENCE_SECONDS):
            return await response.content.readany()
    except (aiohttp.ClientError, ConnectionError) as error:
        raise UnknownOutcomeError(f"watch broke off: {type(error).__name__}: {error}") from error
    except TimeoutError as error:
        silence = f"nothing came for {MAX_SILENCE_SECONDS:g} s"
        raise UnknownOutcomeError(f"watch broke off: {silence}") from error
