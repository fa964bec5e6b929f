"""An HTTP server that answers from a script.

It stands beside the API server in memory for what that one never does: answers that are cut off or
no JSON, connections closed in the midst, a Retry-After of any kind.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from asyncjob.json_types import JsonObject

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Answers requests by a list of functions, the last one for ever; notes each request."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[web.Request] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request)

    @property
    def tokens(self) -> list[str]:
        return [request.headers["Authorization"] for request in self.requests]


def ok(body: JsonObject | None = None) -> Any:
    """Answer 200."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(dict(body or {}))

    return answer


def error(code: int, reason: str = "", message: str = "no", **headers: str) -> Any:
    """Answer with a Status."""

    async def answer(_: web.Request) -> web.StreamResponse:
        status = {"kind": "Status", "code": code, "reason": reason, "message": message}
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response(status, status=code, headers=names)

    return answer


def hang_up(request: web.Request) -> Any:
    """Close the connection without an answer."""

    async def answer() -> web.StreamResponse:
        assert request.transport
        request.transport.close()
        return web.Response()

    return answer()


def stream(*lines: JsonObject | bytes, broken: bool = False) -> Any:
    """Answer with one line each; broken: the connection is cut in the midst."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            await response.write(data)
        if broken:
            assert request.transport
            request.transport.close()
        return response

    return answer


def event(kind: str, version: str, name: str = "j", **more: Any) -> dict[str, Any]:
    """Return a watch event."""
    metadata = {"name": name, "resourceVersion": version, **more}
    return {"type": kind, "object": {"metadata": metadata}}
