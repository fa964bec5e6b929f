"""What is done to a part: it is killed or moved at a request, or what it is told is withheld.

A watch may withhold what the API server's own may: it may be late, show only the newest of several
versions of an object, or end with 410, after which the part has to list again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Protocol

import orjson

from asyncjob_perturbation.calls import Call, subject_of
from asyncjob_perturbation.plan import HELD_SECONDS, LATE_SECONDS, MOVES, STALE_SECONDS, When
from asyncjob_perturbation.proxy import Events, Interference

_EXPIRED: Final = {
    "type": "ERROR",
    "object": {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "too old resource version",
        "reason": "Expired",
        "code": 410,
    },
}


class Move(Protocol):
    """Moves the part to the API server that lags, or back: all its watches end."""

    def __call__(self, *, away: bool) -> None:
        """Move it."""


Queue = asyncio.Queue[tuple[Call, bytes] | None]
"""Events of a watch; None: it has ended."""


class KillAt(Interference):
    """Kills a part at one request."""

    def __init__(self, call: Call, when: When, kill: Callable[[], None]) -> None:
        self.fired = self.over = False
        self._call = call
        self._when = when
        self._kill = kill

    def before(self, call: Call) -> bool:
        """Kill it before the API server gets the request."""
        if self._when is When.BEFORE and self._is_due(call):
            self._fire()
            return False
        return True

    def after(self, call: Call) -> bool:
        """Kill it before it gets the answer."""
        if self._when is When.AFTER and self._is_due(call):
            self._fire()
            return False
        return True

    def _is_due(self, call: Call) -> bool:
        return not self.fired and call == self._call

    def _fire(self) -> None:
        self.fired = self.over = True
        self._kill()


class LoseAnswer(Interference):
    """Loses the answer to one request."""

    def __init__(self, call: Call) -> None:
        self.fired = self.over = False
        self._call = call

    def after(self, call: Call) -> bool:
        """Lose it."""
        if self.fired or call != self._call:
            return True
        self.fired = self.over = True
        return False


class MoveAt(Interference):
    """Moves a part to another API server when a request is answered, and back after a while."""

    def __init__(self, call: Call, move: Move, kill: Callable[[], None] | None = None) -> None:
        self.fired = self.over = False
        self._call = call
        self._move = move
        self._kill = kill

    def after(self, call: Call) -> bool:
        """Move it; the answer arrives unless it is killed."""
        if self.fired or call != self._call:
            return True
        self.fired = True
        self._move(away=True)
        asyncio.get_running_loop().call_later(STALE_SECONDS, self._back)
        if self._kill:
            self._kill()
        return not self._kill

    def _back(self) -> None:
        self._move(away=False)
        self.over = True


class WithholdFrom(Interference):
    """Withholds an event of a watch and what that watch shows in the seconds after it."""

    def __init__(self, call: Call, when: When) -> None:
        self.fired = self.over = False
        self._call = call
        self._when = when

    async def watch(self, events: Events) -> AsyncIterator[bytes]:
        """Show all but what is withheld."""
        coming: Queue = asyncio.Queue()
        reading = asyncio.ensure_future(_read_into(coming, events))
        try:
            while (event := await coming.get()) is not None:
                call, line = event
                if self.fired or call != self._call:
                    yield line
                    continue
                self.fired = True
                for one in await self._instead_of(line, coming):
                    yield one
                self.over = True
                if self._when is When.GAP:
                    return
        finally:
            self.over = self.fired
            reading.cancel()

    async def _instead_of(self, line: bytes, coming: Queue) -> list[bytes]:
        if self._when is When.LATE:
            return [line, *await _lines_within(coming, LATE_SECONDS)]
        held = [line, *await _lines_within(coming, HELD_SECONDS)]
        return merged(held) if self._when is When.MERGED else [orjson.dumps(_EXPIRED) + b"\n"]


async def _read_into(coming: Queue, events: Events) -> None:
    async for event in events:
        coming.put_nowait(event)
    coming.put_nowait(None)


Done = KillAt | LoseAnswer | MoveAt | WithholdFrom
"""`fired`: it has begun; `over`: all of it has been done, and what follows is as undisturbed."""


def interference(call: Call, when: When, kill: Callable[[], None], move: Move) -> Done:
    """Return what a case does."""
    if when in {When.BEFORE, When.AFTER}:
        return KillAt(call, when, kill)
    if when is When.LOST:
        return LoseAnswer(call)
    if when in MOVES:
        return MoveAt(call, move, kill if when is When.STALE_START else None)
    return WithholdFrom(call, when)


async def _lines_within(coming: Queue, seconds: float) -> list[bytes]:
    """Return what comes within some seconds, or until the watch ends."""
    lines: list[bytes] = []
    try:
        async with asyncio.timeout(seconds):
            while (event := await coming.get()) is not None:
                lines.append(event[1])
            coming.put_nowait(None)
    except TimeoutError:
        pass
    return lines


def merged(lines: list[bytes]) -> list[bytes]:
    """Return what tells the newest of each object: one event, or none if it came and went."""
    events: dict[str, tuple[str, Any]] = {}
    for line in lines:
        event = orjson.loads(line)
        subject, kind = _subject(event), str(event["type"])
        first = events.pop(subject, (kind, None))[0]
        events[subject] = (first, event)
    return [
        orjson.dumps({**event, "type": "ADDED" if is_new else event["type"]}) + b"\n"
        for first, event in events.values()
        if not ((is_new := first == "ADDED") and event["type"] == "DELETED")
    ]


def _subject(event: Any) -> str:
    metadata = subject_of(event).get("metadata", {})
    return str(metadata.get("uid") or metadata.get("name") or event["type"])
