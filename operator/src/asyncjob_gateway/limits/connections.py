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

SWEEP_SECONDS: Final = 0.5
"""How often is looked for those who have kept the gateway waiting for too long."""


class Peer(Protocol):
    """Who is at the other end of a connection."""

    def hang_up(self) -> None:
        """Close the connection at once, whatever has not been sent yet."""


class Awaited(Enum):
    """What a connection waits for."""

    HEAD = "head"
    """The rest of the head of a request; the first byte of the first one included."""

    NEXT = "next"
    """Another request: kept alive. The server itself bounds that."""

    TAKING = "taking"
    """The peer, to take what it is sent; or to be gone, where it was hung up on."""

    ANSWER = "answer"
    """The app, to answer a request."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How many connections there may be, and how many seconds a peer has."""

    most: int
    head: float
    taking: float

    def seconds(self, awaited: Awaited) -> float | None:
        """Return how long this may be waited for, None for as long as it takes."""
        return {Awaited.HEAD: self.head, Awaited.TAKING: self.taking}.get(awaited)


class Connections:
    """All connections, by what they wait for and since when. `clock` gives seconds."""

    def __init__(self, patience: Patience, clock: Callable[[], float]) -> None:
        self._patience = patience
        self._clock = clock
        self._since: dict[Awaited, OrderedDict[Peer, float]] = {
            one: OrderedDict() for one in Awaited
        }

    def __len__(self) -> int:
        return sum(map(len, self._since.values()))

    def opened(self, peer: Peer) -> None:
        """Note a connection; where there are too many, hang up on whoever is waited for longest.

        Who has sent half a head goes first, then who takes nothing, then who is merely kept alive;
        the newcomer goes if all others are being served.
        """
        if len(self) >= self._patience.most:
            last = next(self._idle(), peer)
            self._drop(last, "too many connections")
            if last is peer:
                return
        self._since[Awaited.HEAD][peer] = self._clock()

    def now(self, peer: Peer, awaited: Awaited) -> None:
        """Note what a connection waits for from now on, unless it has since before."""
        if peer in self._since[awaited] or not self._forget(peer):
            return
        self._since[awaited][peer] = self._clock()

    def closed(self, peer: Peer) -> None:
        """Forget a connection."""
        self._forget(peer)

    def sweep(self) -> None:
        """Hang up on those who have been waited for long enough."""
        for awaited, waiting in self._since.items():
            seconds = self._patience.seconds(awaited)
            if seconds is None:
                continue
            overdue = self._clock() - seconds
            while waiting and next(iter(waiting.values())) <= overdue:
                self._drop(next(iter(waiting)), f"nothing came of it ({awaited.value})")

    async def keep_sweeping(self) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep()

    def _idle(self) -> Iterator[Peer]:
        for awaited in (Awaited.HEAD, Awaited.TAKING, Awaited.NEXT):
            yield from self._since[awaited]

    def _drop(self, peer: Peer, why: str) -> None:
        self._forget(peer)
        log.debug("hung up", why=why)  # anyone can bring it about at will
        peer.hang_up()

    def _forget(self, peer: Peer) -> bool:
        return any(known.pop(peer, None) is not None for known in self._since.values())
