"""Liveness, readiness and metrics over HTTP, for the probes of the pod and for Prometheus.

They are served from a thread of their own, so that they answer while the event loop is blocked. A
handler that keeps the interpreter's lock for long (native code) still silences them; the kubelet
counts a probe without an answer as failed.

The process counts as alive as long as a restart would not help. Checks are counted, not seconds, so
that a machine that slept wakes up healthy. A stall of the event loop fails the probe late on
purpose: the restart interrupts all jobs of the process, and an ordinary slow handler ends by
itself.
"""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from asyncjob.errors import PortTakenError
from asyncjob_worker.leases.heartbeat import HeartbeatThread
from asyncjob_worker.leases.stall_detector import LivenessCounter, Watchdog
from asyncjob_worker.settings import Settings

CHECK_SECONDS: Final = 1.0
"""Between two checks; `--stall-limit` and the number of missed heartbeats are counted in these."""

MAX_MISSED_HEARTBEATS: Final = 30
"""Checks without a tick of the heartbeat thread after which /livez fails. An event loop that runs
has noticed long before and restarts the worker (`MAX_MISSED_HEARTBEAT_CHECKS`)."""

THREAD_JOIN_SECONDS = 2.0
"""What the thread gets to close its socket; it is a daemon, which the process does not wait for."""

RequestHandler = Callable[[web.Request], Awaitable[web.Response]]


@dataclass(frozen=True, slots=True)
class ReadinessState:
    """What readiness depends on, at one point in time."""

    registered: bool = True
    queue_known: bool = True
    workers_known: bool = True
    watching_jobs: bool = True
    enforcement_unproven: bool = False
    draining: bool = False


def unready_reasons(state: ReadinessState) -> str:
    """Return why the worker claims no jobs now; empty if it does."""
    checks = (
        (not state.registered, "not registered: no worker Lease, or no heartbeat thread"),
        (not state.queue_known, "queue not known: its AsyncQueue has not been listed"),
        (not state.workers_known, "workers not known: their Leases have not been listed"),
        (not state.watching_jobs, "jobs not watched: there is no watch of queued jobs"),
        (state.enforcement_unproven, "ownership is not enforced: the policy does not hold yet"),
        (state.draining, "draining: no more jobs are claimed"),
    )
    return "\n".join(reason for failed, reason in checks if failed)


class Health:
    """Liveness and readiness of one worker process.

    Used in a thread that neither the event loop nor the heartbeat thread can block. `stall_limit`
    in seconds; 0 means that a stall is never a reason to restart.
    """

    def __init__(
        self,
        loop_liveness: LivenessCounter,
        heartbeat: HeartbeatThread,
        readiness: Callable[[], ReadinessState],
        *,
        stall_limit: float,
    ) -> None:
        self._loop_liveness = loop_liveness
        self._loop_watchdog = Watchdog(loop_liveness)
        self._heartbeat = heartbeat
        self._heartbeat_watchdog = Watchdog(heartbeat.liveness)
        self._readiness = readiness
        self._stall_limit = stall_limit

    def check(self) -> None:
        """Check the event loop and the heartbeat thread; to be called every CHECK_SECONDS."""
        self._loop_watchdog.check()
        self._heartbeat_watchdog.check()

    def not_alive(self) -> str:
        """Return why the process should be restarted; empty if it should not."""
        stalled = self._loop_watchdog.missed * CHECK_SECONDS if self._loop_liveness.ticks else 0.0
        reasons = []
        if self._stall_limit and stalled > self._stall_limit:
            limit = f"the limit is {self._stall_limit:g} s"
            reasons.append(f"event loop: blocked for {stalled:.0f} s, {limit}")
        if self._heartbeat.alive and self._heartbeat_watchdog.missed > MAX_MISSED_HEARTBEATS:
            reasons.append(f"heartbeat thread: silent for {self._heartbeat_watchdog.missed:.0f} s")
        return "\n".join(reasons)

    def not_ready(self) -> str:
        """Return why the worker claims no jobs now; empty if it does."""
        return unready_reasons(self._readiness())


@contextmanager
def serve_health(settings: Settings, health: Health, registry: CollectorRegistry) -> Iterator[None]:
    """Serve while inside; not at all on port 0. Raises PortTakenError."""
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
    """Return a listening socket; raises PortTakenError, which says what is wrong."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    dual_stack = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=dual_stack)
    except OSError as error:
        way_out = "choose another --health-port or --health-host, or --health-port=0 for none"
        raise PortTakenError.of(error, "health and metrics", host, port, way_out) from error


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
        """End the thread, which closes the socket."""
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
        reason = check()
        return web.Response(text=f"{reason or 'ok'}\n", status=503 if reason else 200)

    return answer
