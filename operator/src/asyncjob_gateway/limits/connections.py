"""Connections: how many there may be, and for how long each may keep the gateway waiting.

A peer that sends half a head, or takes nothing of what it is sent, costs a file descriptor and
memory for as long as it likes. Whoever is waited for is therefore hung up on after some seconds,
and at once where a newcomer needs the place.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

import structlog

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
        """Note a connection; where there are too many, hang up on whoever is waited for longest.

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
