"""Bodies are JSON, sent as JSON, and exactly what JSON is; that is checked before any field."""

from typing import Any, Final

from fastapi import Request
from starlette.requests import ClientDisconnect

from asyncjob import free_json
from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError

MAX_DEPTH: Final = free_json.MAX_DEPTH + 8
"""A payload may be as deep as the store allows, and lies some levels deep in a batch."""


class StrictRequest(Request):
    """A request whose body is read once, and strictly."""

    async def read(self, most: int) -> None:
        """Read and parse the body; raises RefusedError (413, 415) and FreeJsonError (400)."""
        self._body = body = await self._bounded(most)
        if not body:
            return
        if not _is_json(self.headers.get("content-type", "")):
            raise RefusedError(kinds.BAD_MEDIA)
        self._parsed = free_json.parse(body, what="body", max_depth=MAX_DEPTH)

    async def _bounded(self, most: int) -> bytes:
        """Return at most so many bytes; what its length says is too long is not read at all."""
        length = self.headers.get("content-length", "")
        found = bytearray()
        too_long = RefusedError(kinds.TOO_LARGE, f"the body has more than {most} bytes")
        if length.isdecimal() and int(length) > most:
            raise too_long
        try:
            async for chunk in self.stream():
                found += chunk
                if len(found) > most:
                    raise too_long
        except ClientDisconnect as error:
            raise RefusedError(kinds.MALFORMED, "the body broke off") from error
        return bytes(found)

    async def json(self) -> Any:
        """Return what the body says."""
        return self._parsed


def _is_json(content_type: str) -> bool:
    kind, _, parameters = content_type.partition(";")
    charset = parameters.strip().lower()
    plain = kind.strip().lower() == "application/json"
    return plain and charset in {"", "charset=utf-8", 'charset="utf-8"'}
