"""Raw requests to an API server in any identity's name; a refusal is an answer, not an error."""

import http.client
import json
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True)
class Answer:
    """Status code, body and warnings."""

    status: int
    body: dict[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the server did what was asked."""
        return self.status < http.HTTPStatus.BAD_REQUEST

    @property
    def message(self) -> str:
        """What the server says about a refusal."""
        return str(self.body.get("message", ""))

    def object(self) -> dict[str, Any]:
        """Return the object; an assertion with the server's words if it was refused."""
        assert self.accepted, f"{self.status}: {self.message}"
        return self.body


class _Connection(http.client.HTTPSConnection):
    """A connection that is kept: a handshake costs both sides several times what a request does."""

    def __del__(self) -> None:
        self.close()

    def ask(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        """Send a request, once more if the server has closed the connection since the last.

        A write whose answer does not come may have been done, and is not sent again.
        """
        is_kept, is_sent = self.sock is not None, False
        try:
            self.request(method, target, data, headers)
            is_sent = True
            return self.getresponse()
        except (ConnectionError, ssl.SSLEOFError):
            self.close()
            if not is_kept or (is_sent and method != "GET"):
                raise
        self.request(method, target, data, headers)
        return self.getresponse()


class _Kept(threading.local):
    """The connections of a thread."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, Path], _Connection] = {}

    def to(self, url: str, ca_file: Path) -> _Connection:
        """Return the one to an API server."""
        if (url, ca_file) not in self._all:
            address, trust = urlsplit(url).netloc, _trust(ca_file)
            self._all[url, ca_file] = _Connection(address, timeout=30, context=trust)
        return self._all[url, ca_file]


_KEPT = _Kept()


@cache
def _trust(ca_file: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)


@dataclass(frozen=True)
class Client:
    """One identity on one API server; `query` and `headers` go with every request."""

    url: str
    ca_file: Path
    token: str = field(repr=False)
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()

    def dry(self) -> "Client":
        """Return the same identity for writes that change nothing."""
        return replace(self, query=(*self.query, ("dryRun", "All")))

    def with_token(self, token: str) -> "Client":
        """Return another identity on the same API server."""
        return replace(self, token=token, query=(), headers=())

    def sending(self, headers: Mapping[str, str]) -> "Client":
        """Return the same identity with further headers, such as those of impersonation."""
        return replace(self, headers=(*self.headers, *headers.items()))

    def get(self, path: str, **query: str) -> Answer:
        """GET an object or a list."""
        return self.request("GET", path, query=query)

    def create(self, path: str, body: Any) -> Answer:
        """POST to a collection or a subresource."""
        return self.request("POST", path, body)

    def replace(self, path: str, body: Any) -> Answer:
        """PUT."""
        return self.request("PUT", path, body)

    def merge(self, path: str, body: Any) -> Answer:
        """JSON merge patch."""
        return self.request("PATCH", path, body, content_type=MERGE)

    def patch(self, path: str, operations: Any) -> Answer:
        """JSON Patch."""
        return self.request("PATCH", path, operations, content_type=JSON_PATCH)

    def delete(self, path: str) -> Answer:
        """DELETE at once."""
        return self.request("DELETE", path, {"gracePeriodSeconds": 0})

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request."""
        data = None if body is None else json.dumps(body).encode()
        return self.send(method, path, data, content_type=content_type, accept=accept, query=query)

    def send(
        self,
        method: str,
        path: str,
        data: bytes | None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request whose body is bytes already."""
        asked = (
            [*self.query, *(query or {}).items()] if method != "GET" else [*(query or {}).items()]
        )
        target = f"{path}?{urlencode(asked)}" if asked else path
        connection = _KEPT.to(self.url, self.ca_file)
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": content_type,
            "Accept": accept,
            **dict(self.headers),
        }
        try:
            response = connection.ask(method, target, data, headers)
            text = response.read()
        except BaseException:
            connection.close()
            raise
        warnings = response.headers.get_all("Warning") or []
        return Answer(response.status, json.loads(text), tuple(warnings))
