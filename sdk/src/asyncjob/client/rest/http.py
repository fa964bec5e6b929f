"""What the sync and the async HTTP client share: requests, responses, time limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpx
import orjson

from asyncjob.client.errors import ClientConfigError, GatewayUnavailableError
from asyncjob.client.rest.auth import TokenSource
from asyncjob.client.steps import Answer, Call
from asyncjob.json_types import Json

JITTER: Final = (0.8, 1.2)
"""Pauses are this much shorter or longer by chance, so that many clients do not come back at once.
"""

CONNECT_SECONDS: Final = 5.0
RESPONSE_SECONDS: Final = 60.0

_OTHER: Final = frozenset({"GET", "DELETE"})


@dataclass(frozen=True, slots=True)
class RequestBuilder:
    """How requests are made: the gateway's address, and who asks."""

    url: str
    token: TokenSource
    user_agent: str

    def request(self, call: Call) -> Mapping[str, object]:
        """Return the arguments of httpx for a request; raises ClientConfigError: no good token."""
        headers = {"Accept": call.accept, "User-Agent": self.user_agent, **dict(call.headers)}
        token = self.token()
        if token:
            if not (token.isascii() and token.isprintable()):
                raise ClientConfigError("the token has characters that no bearer token can have")
            headers["Authorization"] = f"Bearer {token}"
        content = None if call.body is None else orjson.dumps(call.body)
        if content is not None:
            headers["Content-Type"] = call.content_type
        return {
            "method": call.method,
            "url": self.url + call.path,
            "params": list(call.params),
            "headers": headers,
            "content": content,
        }


def httpx_timeout(read: float | None = None) -> httpx.Timeout:
    """Return the limits of a request; `read` bounds the silence of the server, in seconds."""
    seconds = RESPONSE_SECONDS if read is None else read
    return httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))


def to_answer(response: httpx.Response, at: float) -> Answer:
    """Return an answer whose body was read."""
    return Answer(at, _json(response.content), response.status_code, dict(response.headers))


def _json(content: bytes) -> Json:
    try:
        value: Json = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return value


def no_response_error(call: Call, error: Exception) -> GatewayUnavailableError:
    """Return the error for a request without an answer."""
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return GatewayUnavailableError(f"no answer to {call.method} {call.path}: {what}")
