"""What is submitted under each number: a function for each load."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from asyncjob_chaos.handlers import LONG, PLAIN
from asyncjob_chaos.wait_handlers import ANSWERED, ITEM, PARENT, STEPS

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SignalOrder:
    """A signal to a job, sent some seconds after it was accepted."""

    delay: float
    in_time: bool = True
    """Whether the job waits for so long that it must come."""


@dataclass(frozen=True, slots=True)
class Order:
    """A job, or an array, by its fields; and a signal that it is to be sent."""

    fields: Fields
    is_array: bool = False
    signal: SignalOrder | None = None


def plain(number: int) -> Order:
    """Return a short job; every fourth writes a temporary file."""
    payload = {"seconds": 0.05 + 0.05 * (number % 5), "scratch": number % 4 == 0}
    return Order({"type": PLAIN, "payload": payload})


KEYS: Final = 6
LONG_AT_FIRST: Final = 30


def long(number: int) -> Order:
    """Return a long job with a checkpoint after each step, or a short one."""
    if number >= LONG_AT_FIRST and number % 3:
        return plain(number)
    payload = {"seconds": 0.4, "steps": 6 + number % 5, "fails": number % 5 == 0}
    key = f"key-{number % KEYS}"
    return Order({"type": LONG, "payload": payload, "concurrency_key": key})


SLEEP_SECONDS: Final = 3.0
"""More than the two seconds for which a job keeps its slot."""

PATIENT_SECONDS: Final = 90
"""How long a job waits for a signal that must come: longer than any fault, and not for ever."""

TIGHT_SECONDS: Final = 5
"""How long one waits for a signal that is sent about then."""

ITEMS: Final = 12
CHUNK_SIZE: Final = 4
PARALLELISM: Final = 2


def waits(number: int) -> Order:
    """Return one of nine kinds, each of which comes to both clients in turn."""
    turn, kind = divmod(number, len(_KINDS))
    return _KINDS[kind](turn)


def _steps(count: int, **more: bool) -> Order:
    payload = {"steps": count, "seconds": 0.3, "sleep": SLEEP_SECONDS, **more}
    return Order({"type": STEPS, "payload": payload})


def _answered(limit: int, signal: SignalOrder) -> Order:
    payload = {"seconds": 0.2, "limit": limit, "scratch": True}
    return Order({"type": ANSWERED, "payload": payload}, signal=signal)


def _parent(seconds: float) -> Order:
    return Order({"type": PARENT, "payload": {"seconds": seconds}})


def _array(turn: int) -> Order:
    # Two at a time, a chunk takes longer than a second, after which it writes its checkpoint.
    payload = {"seconds": 0.8, "fails": turn % ITEMS if turn % 2 else None}
    fields: Fields = {"type": ITEM, "payload": payload, "items": {"count": ITEMS}}
    return Order({**fields, "chunk_size": CHUNK_SIZE, "parallelism": PARALLELISM}, is_array=True)


_TIGHT_DELAYS: Final = (6.5, 5.5, 7.0, 6.0, 5.0)
"""About when the wait is over, which begins after a step and ends at a whole second."""

_KINDS: Final[tuple[Callable[[int], Order], ...]] = (
    lambda _: _steps(2, scratch=True),
    lambda _: _answered(PATIENT_SECONDS, SignalOrder(0.0)),
    lambda _: _parent(SLEEP_SECONDS),
    _array,
    lambda turn: _steps(3, fails=turn % 2 == 0),
    lambda turn: _answered(PATIENT_SECONDS, SignalOrder(4.0 + turn % 4)),
    lambda turn: _parent(0.3 if turn % 2 else SLEEP_SECONDS),
    lambda turn: _answered(TIGHT_SECONDS, SignalOrder(_TIGHT_DELAYS[turn % 5], in_time=False)),
    plain,
)
"""Each is called with how often it has come before."""
