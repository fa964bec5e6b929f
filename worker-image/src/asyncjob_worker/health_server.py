"""Health and metrics over HTTP, from a thread of its own.

So it answers while the event loop is blocked. A handler that keeps the interpreter's lock for long
(native code) still silences it; the kubelet counts a probe without an answer as failed.
"""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from asyncjob.errors import ConfigError
from asyncjob_worker.health import CHECK_SECONDS, Health
from asyncjob_worker.settings import Settings

THREAD_JOIN_SECONDS = 2.0

RequestHandler = Callable[[web.Request], Awaitable[web.Response]]


@contextmanager
def serve_health(settings: Settings, health: Health, registry: CollectorRegistry) -> Iterator[None]:
    """Serve while inside; not at all on port 0. Raises ConfigError if the port cannot be had."""
    if not settings.health_port:
        yield
        return
    server = HealthServer(listen(settings.health_host, settings.health_port), health, registry)
    server.start()
    try:
        yield
    finally:
        server.stop()


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raises ConfigError that says what is wrong."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise ConfigError(
            f"cannot serve health and metrics on {host} port {port}: {error.strerror or error}; "
            "choose another --health-port or --health-host, or --health-port=0 for none"
        ) from error


class HealthServer:
    """Answers `/livez`, `/readyz` and `/metrics` on a socket."""

    def __init__(self, sock: socket.socket, health: Health, registry: CollectorRegistry) -> None:
        self._socket = sock
        self._health = health
        self._registry = registry
        self._thread = threading.Thread(target=self._main, name="health", daemon=True)
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close the socket."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(THREAD_JOIN_SECONDS)

    def _main(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        app = web.Application()
        app.add_routes(
            [
                web.get("/livez", _probe_handler(self._health.not_alive)),
                web.get("/readyz", _probe_handler(self._health.not_ready)),
                web.get("/metrics", self._metrics),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        try:
            await web.SockSite(runner, self._socket).start()
            while not self._stopping.is_set():
                self._health.check()
                await self._wait()
        finally:
            await runner.cleanup()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self._stopping.wait()
        except TimeoutError:
            return

    async def _metrics(self, _: web.Request) -> web.Response:
        body = generate_latest(self._registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


def _probe_handler(check: Callable[[], str]) -> RequestHandler:
    async def answer(_: web.Request) -> web.Response:
        wrong = check()
        return web.Response(text=f"{wrong or 'ok'}\n", status=503 if wrong else 200)

    return answer
