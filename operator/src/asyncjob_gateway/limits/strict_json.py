"""Bodies are JSON, sent as JSON, and exactly what JSON is; that is checked before any field."""

import asyncio
from typing import Any, Final

from fastapi import Request

from asyncjob import free_json
from asyncjob.json_types import Json
from asyncjob_gateway import problem_types
from asyncjob_gateway.errors import RefusedError

MAX_DEPTH: Final = free_json.MAX_DEPTH + 8
"""A payload may be as deep as the store allows, and lies some levels deep in a batch."""

MAX_VALUES: Final = 250_000
"""Values of one body: a body of 4 MiB could have 2 million, which take seconds and 200 MiB."""

PARSE_INLINE_BYTES: Final = 64 * 1024
"""Bytes that are parsed within a millisecond or two: in the event loop, that is."""


class StrictJsonRequest(Request):
    """A request whose body is set once, and strictly."""

    async def parse(self, body: bytes, parse_lock: asyncio.Lock) -> None:
        """Parse the body; raises RefusedError (413, 415) and FreeJsonError (400).

        A large one is parsed beside the event loop, which has others to answer meanwhile.
        """
        self._body = body
        if not body:
            return
        if not _is_json_media_type(self.headers.get("content-type", "")):
            raise RefusedError(problem_types.UNSUPPORTED_MEDIA_TYPE)
        if len(body) <= PARSE_INLINE_BYTES:
            self._parsed = _parse_body(body)
            return
        async with parse_lock:
            self._parsed = await asyncio.to_thread(_parse_body, body)

    async def json(self) -> Any:
        """Return what the body says."""
        return self._parsed


def _parse_body(body: bytes) -> Json:
    return free_json.parse(
        body, what="body", max_depth=MAX_DEPTH, max_values=MAX_VALUES, unique_keys=True
    )


def _is_json_media_type(content_type: str) -> bool:
    kind, _, parameters = content_type.partition(";")
    charset = parameters.strip().lower()
    plain = kind.strip().lower() == "application/json"
    return plain and charset in {"", "charset=utf-8", 'charset="utf-8"'}
