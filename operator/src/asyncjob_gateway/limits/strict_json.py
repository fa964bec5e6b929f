"""Bodies are JSON, sent as JSON, and exactly what JSON is; that is checked before any field."""

from typing import Any, Final

from fastapi import Request

from asyncjob import free_json
from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.limits.bodies import bounded

MAX_DEPTH: Final = free_json.MAX_DEPTH + 8
"""A payload may be as deep as the store allows, and lies some levels deep in a batch."""


class StrictRequest(Request):
    """A request whose body is read once, and strictly."""

    async def read(self, most: int) -> None:
        """Read and parse the body; raises RefusedError (413, 415) and FreeJsonError (400)."""
        self._body = body = await bounded(self, most)
        if not body:
            return
        if not _is_json(self.headers.get("content-type", "")):
            raise RefusedError(kinds.BAD_MEDIA)
        self._parsed = free_json.parse(body, what="body", max_depth=MAX_DEPTH)

    async def json(self) -> Any:
        """Return what the body says."""
        return self._parsed


def _is_json(content_type: str) -> bool:
    kind, _, parameters = content_type.partition(";")
    charset = parameters.strip().lower()
    plain = kind.strip().lower() == "application/json"
    return plain and charset in {"", "charset=utf-8", 'charset="utf-8"'}
