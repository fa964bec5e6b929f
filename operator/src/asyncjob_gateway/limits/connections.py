"""Client connections: how many there may be, and how long each may keep the gateway waiting.

A peer that sends half a head, or does not read its response, costs a file descriptor and memory;
its connection is closed after some seconds, or at once when a new connection needs the place. The
uvicorn protocol here reports the state of each connection, and answers what is not HTTP with a
problem.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final, Protocol

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

from asyncjob_gateway import problem_types
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.problems import problem_response

log = structlog.get_logger()

SWEEP_INTERVAL_SECONDS: Final = 0.5
"""How often is looked for those who have kept the gateway waiting for too long."""


class Peer(Protocol):
    """Who is at the other end of a connection."""

    def abort(self) -> None:
        """Close the connection at once, whatever has not been sent yet."""


class ConnectionState(Enum):
    """What a connection waits for."""

    READING_HEAD = "head"
    """The rest of the head of a request; the first byte of the first one included."""

    IDLE = "next"
    """Another request: kept alive. The server itself bounds that."""

    WRITING = "taking"
    """The peer, to take what it is sent; or to be gone, where it was hung up on."""

    PROCESSING = "answer"
    """The app, to answer a request."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be, and how many seconds a peer has."""

    max_connections: int
    head_timeout: float
    write_timeout: float

    def timeout_of(self, state: ConnectionState) -> float | None:
        """Return how long this may be waited for, None for as long as it takes."""
        return {
            ConnectionState.READING_HEAD: self.head_timeout,
            ConnectionState.WRITING: self.write_timeout,
        }.get(state)


class ConnectionTable:
    """All connections, by what they wait for and since when. `clock` gives seconds."""

    def __init__(self, limits: ConnectionLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._since: dict[ConnectionState, OrderedDict[Peer, float]] = {
            one: OrderedDict() for one in ConnectionState
        }

    def __len__(self) -> int:
        return sum(map(len, self._since.values()))

    def add(self, peer: Peer) -> None:
        """Note a connection; where there are too many, hang up on the one waited for longest.

        Who has sent half a head goes first, then who takes nothing, then who is merely kept alive;
        the newcomer goes if all others are being served.
        """
        if len(self) >= self._limits.max_connections:
            last = next(self._evictable(), peer)
            self._abort(last, "too many connections")
            if last is peer:
                return
        self._since[ConnectionState.READING_HEAD][peer] = self._clock()

    def set_state(self, peer: Peer, state: ConnectionState) -> None:
        """Note what a connection waits for from now on, unless it has since before."""
        if peer in self._since[state] or not self._discard(peer):
            return
        self._since[state][peer] = self._clock()

    def remove(self, peer: Peer) -> None:
        """Forget a connection."""
        self._discard(peer)

    def close_overdue(self) -> None:
        """Hang up on those who have been waited for long enough."""
        for awaited, waiting in self._since.items():
            seconds = self._limits.timeout_of(awaited)
            if seconds is None:
                continue
            overdue = self._clock() - seconds
            while waiting and next(iter(waiting.values())) <= overdue:
                self._abort(next(iter(waiting)), f"nothing came of it ({awaited.value})")

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_INTERVAL_SECONDS)
            self.close_overdue()

    def _evictable(self) -> Iterator[Peer]:
        for awaited in (
            ConnectionState.READING_HEAD,
            ConnectionState.WRITING,
            ConnectionState.IDLE,
        ):
            yield from self._since[awaited]

    def _abort(self, peer: Peer, reason: str) -> None:
        self._discard(peer)
        log.debug("hung up", why=reason)  # anyone can bring it about at will
        peer.abort()

    def _discard(self, peer: Peer) -> bool:
        return any(known.pop(peer, None) is not None for known in self._since.values())


class GatewayHttpProtocol(H11Protocol):
    """One connection. It tells `connections` what it waits for; the app may hang up on it."""

    connections_: ClassVar[ConnectionTable]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.app_state = {**self.app_state, "hang_up": self.abort}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Take a place among the connections."""
        super().connection_made(transport)
        self.connections_.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back what was taken."""
        self.connections_.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; the first byte of a head begins the time that the whole of it has."""
        if not self._is_responding:
            self.connections_.set_state(self, ConnectionState.READING_HEAD)
        super().data_received(data)

    def handle_events(self) -> None:
        """Read requests; one that is there is the app's business, unless its answer is stuck."""
        super().handle_events()
        if self._is_responding and not self.flow.write_paused:
            self.connections_.set_state(self, ConnectionState.PROCESSING)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of one that was answered before its end."""
        self.connections_.set_state(
            self, ConnectionState.WRITING if self.transport.is_closing() else ConnectionState.IDLE
        )
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which no other request has come."""
        self.connections_.set_state(self, ConnectionState.WRITING)
        super().timeout_keep_alive_handler()

    def pause_writing(self) -> None:
        """Note that the peer takes nothing."""
        self.connections_.set_state(self, ConnectionState.WRITING)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that it does again."""
        self.connections_.set_state(
            self, ConnectionState.PROCESSING if self._is_responding else ConnectionState.IDLE
        )
        super().resume_writing()

    def abort(self) -> None:
        """Close the connection at once; an app that still answers finds its peer gone."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        self.transport.abort()

    @property
    def _is_responding(self) -> bool:
        cycle = getattr(self, "cycle", None)  # uvicorn says that it always has one
        return cycle is not None and not cycle.response_complete

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # ours say more
        """Say that the request is not HTTP, and hang up."""
        self.connections_.set_state(self, ConnectionState.WRITING)
        refusal = problem_response(RefusedError(problem_types.NOT_HTTP), "")
        headers = [*refusal.raw_headers, (b"connection", b"close")]
        for event in (
            h11.Response(status_code=refusal.status_code, headers=headers),
            h11.Data(data=bytes(refusal.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def protocol_class(connections: ConnectionTable) -> type[GatewayHttpProtocol]:
    """Return the protocol of a server's connections: uvicorn makes one for each by itself."""

    class Counted(GatewayHttpProtocol):
        connections_ = connections

    return Counted
