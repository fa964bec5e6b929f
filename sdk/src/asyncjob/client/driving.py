"""Runs operations: asks them for steps, has the world do these, tells them what came of it."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from asyncjob.app.threads import run_in_daemon_thread
from asyncjob.client.steps import Answer, Emissions, Emit, Fetch, Step, Steps, T
from asyncjob.errors import AsyncJobError

S = TypeVar("S")

_NOTHING: Final = Answer(0.0)


class World(Protocol):
    """Does steps in plain code; one for each run, because it has at most one stream open."""

    def do(self, step: Step) -> Answer:
        """Do it; raises AsyncJobError."""

    def close(self) -> None:
        """Close the stream, if one is open."""


class AsyncWorld(Protocol):
    """Does steps in an event loop; one for each run, because it has at most one stream open."""

    async def do(self, step: Step) -> Answer:
        """Do it; raises AsyncJobError."""

    async def aclose(self) -> None:
        """Close the stream, if one is open."""


@dataclass(frozen=True, slots=True)
class _Ended(Generic[T]):
    value: T


def run(steps: Steps[T], world: World) -> T:
    """Run an operation to its end and return its value."""
    with closing(world), closing(steps):
        turn = _turn(partial(next, steps))
        while not isinstance(turn, _Ended):
            turn = _turn(_reply(steps, world, turn))
        value: T = turn.value
        return value


def iterate(emissions: Emissions[T], world: World) -> Generator[T]:
    """Run an operation and yield what it hands out."""
    with closing(world), closing(emissions):
        turn = _turn(partial(next, emissions))
        while not isinstance(turn, _Ended):
            if isinstance(turn, Emit):
                yield turn.value
                turn = _turn(partial(emissions.send, _NOTHING))
            else:
                turn = _turn(_reply(emissions, world, turn))


async def run_async(steps: Steps[T], world: AsyncWorld) -> T:
    """Run an operation to its end and return its value."""
    with closing(steps):
        async with aclosing(world):
            turn = _turn(partial(next, steps))
            while not isinstance(turn, _Ended):
                turn = _turn(await _reply_async(steps, world, turn))
            value: T = turn.value
            return value


async def iterate_async(emissions: Emissions[T], world: AsyncWorld) -> AsyncGenerator[T]:
    """Run an operation and yield what it hands out."""
    with closing(emissions):
        async with aclosing(world):
            turn = _turn(partial(next, emissions))
            while not isinstance(turn, _Ended):
                if isinstance(turn, Emit):
                    yield turn.value
                    turn = _turn(partial(emissions.send, _NOTHING))
                else:
                    turn = _turn(await _reply_async(emissions, world, turn))


def _turn(resume: Callable[[], S]) -> S | _Ended[Any]:
    """Let the operation go on to its next step, or to its end."""
    try:
        return resume()
    except StopIteration as stop:
        return _Ended(stop.value)


def _reply(steps: Generator[S, Answer, T], world: World, step: Step | Fetch) -> Callable[[], S]:
    """Do the step, and return how the operation is told of it."""
    try:
        answer = Answer(0.0, step.work()) if isinstance(step, Fetch) else world.do(step)
        return partial(steps.send, answer)
    except AsyncJobError as error:
        return partial(steps.throw, error)


async def _reply_async(
    steps: Generator[S, Answer, T], world: AsyncWorld, step: Step | Fetch
) -> Callable[[], S]:
    try:
        if isinstance(step, Fetch):
            return partial(steps.send, Answer(0.0, await run_in_daemon_thread(step.work, "store")))
        return partial(steps.send, await world.do(step))
    except AsyncJobError as error:
        return partial(steps.throw, error)
