"""What goes wrong between a client and the API server: decided for each request from outside.

Who simulates gives a `Faults` that rolls seeded dice; a test gives `ScriptedFaults`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

Loss = Literal["", "before", "after", "late"]


@dataclass(frozen=True, slots=True)
class Call:
    """A request that is on its way."""

    method: str
    path: str
    is_watch: bool
    user_agent: str
    body: bytes
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_write(self) -> bool:
        """Whether it is to change something."""
        return self.method != "GET"


@dataclass(frozen=True, slots=True)
class Fault:
    """What becomes of one request, or of one event of a watch.

    A request reaches the server after `before` seconds, and its answer the client `after` seconds
    after that; one that is infinite never comes. `status` answers in the server's place, which has
    carried the request out all the same if `takes_effect`. The answer is `lost` before the request
    took effect, after it, or so that it takes effect `before` seconds *later* than the client has
    heard of the loss. Of a watch `breaks` cuts the connection instead of the event, `expires` ends
    it with 410, and `drops` leaves the event out, which no API server should do.
    """

    before: float = 0.0
    after: float = 0.0
    status: int = 0
    takes_effect: bool = False
    reason: str = ""
    message: str = "fault"
    retry_after: int | None = None
    lost: Loss = ""
    breaks: bool = False
    expires: bool = False
    drops: bool = False


NO_FAULT: Final = Fault()


class Faults(Protocol):
    """Decides what becomes of requests and events."""

    def on_request(self, call: Call) -> Fault:
        """Return what becomes of a request."""

    def on_event(self, call: Call, type_: str, version: int) -> Fault:
        """Return what becomes of an event; later events never come before earlier ones."""


@dataclass(slots=True)
class _Entry:
    fault: Fault
    matches: Callable[[Call], bool]
    times: int
    is_event: bool


@dataclass(slots=True)
class ScriptedFaults:
    """Faults as a test has them happen: the first entry that fits, so many times."""

    _entries: list[_Entry] = field(default_factory=list)

    def add(
        self,
        fault: Fault,
        *,
        method: str = "",
        path: str = "",
        times: int = 1,
        events: bool = False,
    ) -> None:
        """Have the next requests that fit, or events of watches that do, go wrong so."""

        def matches(call: Call) -> bool:
            return (not method or call.method == method) and path in call.path

        self._entries.append(_Entry(fault, matches, times, events))

    def on_request(self, call: Call) -> Fault:
        """Return what becomes of a request."""
        return self._next(call, is_event=False)

    def on_event(self, call: Call, type_: str, version: int) -> Fault:  # noqa: ARG002  # any event
        """Return what becomes of an event."""
        return self._next(call, is_event=True)

    def _next(self, call: Call, *, is_event: bool) -> Fault:
        for entry in self._entries:
            if entry.times and entry.is_event is is_event and entry.matches(call):
                entry.times -= 1
                return entry.fault
        return NO_FAULT
