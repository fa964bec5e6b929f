"""What a fault is: declared, so that the matrix is a list."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.target import FaultTarget, Setup


def possible() -> str:
    """Return no reason: this can be done everywhere."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault. `act` begins it, and heals it when it is left; it lasts for `hold` seconds."""

    name: str
    does: str
    """In one sentence, for the documentation."""

    shows: tuple[Sign, ...]
    """What must have happened, or the cell has tested nothing."""

    act: Callable[[FaultTarget], AbstractContextManager[None]]
    hold: float = 3.0
    setup: Setup = field(default_factory=Setup)
    cannot: Callable[[], str] = possible
    loads: tuple[str, ...] = ("plain", "long", "waits")


def at_once(
    do: Callable[[FaultTarget], None],
) -> Callable[[FaultTarget], AbstractContextManager[None]]:
    """Return a fault that heals by itself."""

    @contextmanager
    def act(target: FaultTarget) -> Iterator[None]:
        do(target)
        yield

    return act
