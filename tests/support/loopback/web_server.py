"""A web server on the loopback address that answers as a test says and notes what it was asked."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer
from multidict import CIMultiDict

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: CIMultiDict[str]
    body: bytes


@dataclass
class WebServer:
    """`answers` by path; anything else is answered 404."""

    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    host: str = ""

    def url(self, path: str = "/") -> str:
        """Return the address of a path."""
        return f"http://{self.host}{path}"

    def answer(self, path: str, status: int = 200, text: str = "", **headers: str) -> None:
        """Answer requests for a path with this; `_` in a header's name stands for `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}

        async def answer(_: web.Request) -> web.StreamResponse:
            return web.Response(status=status, text=text, headers=named)

        self.answers[path] = answer

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Note the request and answer it."""
        headers = CIMultiDict(request.headers)
        self.asked.append(
            Asked(request.method, str(request.rel_url), headers, await request.read())
        )
        answer = self.answers.get(request.path)
        return await answer(request) if answer else web.Response(status=404, text="nothing here")


@asynccontextmanager
async def web_server() -> AsyncIterator[WebServer]:
    """Run one."""
    server = WebServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    async with TestServer(app) as running:
        server.host = f"{running.host}:{running.port}"
        yield server
