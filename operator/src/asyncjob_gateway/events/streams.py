"""Streams of events that are open: bounded in all and per caller, and ended when the gateway stops.

What a stream carries is described in `asyncjob_gateway.routes.events`.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Final

from sse_starlette import EventSourceResponse, ServerSentEvent

from asyncjob_gateway import kinds
from asyncjob_gateway.auth.caller import Caller
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.telemetry.metrics import GatewayMetrics

RECONNECT_MILLISECONDS: Final = 2000
"""When a browser comes back after its stream has ended."""

EventStream = AsyncGenerator[ServerSentEvent]


class StreamLimiter:
    """Counts streams, and knows when they have to end."""

    def __init__(
        self, max_streams: int, max_per_caller: int, heartbeat: float, metrics: GatewayMetrics
    ) -> None:
        self.stopping = asyncio.Event()
        self.heartbeat = heartbeat
        self.metrics = metrics
        self._max_streams = max_streams
        self._max_per_caller = max_per_caller
        self._open: Counter[str] = Counter()

    def check_capacity(self, caller: Caller) -> None:
        """Raise RefusedError where the caller has as many streams as there may be."""
        if self._open.total() >= self._max_streams:
            raise RefusedError(kinds.BUSY, "too many streams are open", retry_after=5.0)
        if self._open[caller.username] >= self._max_per_caller:
            detail = f"{caller.username} has {self._max_per_caller} streams open already"
            raise RefusedError(kinds.THROTTLED, detail, retry_after=5.0)

    @contextmanager
    def counting(self, caller: Caller) -> Iterator[None]:
        """Count a stream while inside."""
        self._open[caller.username] += 1
        self.metrics.streams.inc()
        try:
            yield
        finally:
            self.metrics.streams.dec()
            self._open[caller.username] -= 1
            if not self._open[caller.username]:
                del self._open[caller.username]

    def response(self, events: EventStream) -> EventSourceResponse:
        """Return the answer that carries the events, with a comment now and then to keep it up.

        A follower that takes nothing is hung up on as everybody else (`limits.connections`).
        """
        return EventSourceResponse(
            events,
            ping=self.heartbeat,
            ping_message_factory=lambda: ServerSentEvent(comment="still here"),
            sep="\n",
        )
