"""A search of every state that a world can get into, and what has to hold in each of them.

The search is breadth first, so that the trace of what it finds is a shortest one. Afterwards it
asks of every state whether all jobs can still end if nothing more fails and nobody helps.
"""

import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.phases import FINAL_PHASES, Phase
from asyncjob_dev.errors import DevError
from asyncjob_dev.proofs.protocol.operators import aged_observation, operator_steps
from asyncjob_dev.proofs.protocol.server import Stored, asked, new_job, phase_of, status_of, view
from asyncjob_dev.proofs.protocol.state import IDLE, WORKING, State, World, start
from asyncjob_dev.proofs.protocol.symmetry import canonical, plain
from asyncjob_dev.proofs.protocol.workers import (
    Step,
    aged,
    late_steps,
    worker_steps,
    write,
)

MAX_STATES: Final = 5_000_000

CAN_END: Final = "every accepted job can still end"


class TooManyStatesError(DevError):
    """A world is larger than the search can hold."""


@dataclass(frozen=True)
class Finding:
    """A broken promise and how it came to that."""

    promise: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        """Return a story: one step a line, each with the jobs after it."""
        return "\n".join([f"it is not true that {self.promise}:", *self.trace])


@dataclass(frozen=True)
class Result:
    """What a search has visited; `finding` is None if every promise holds."""

    world: World
    states: int
    steps: int
    seconds: float
    finding: Finding | None


def steps_of(world: World, state: State) -> Iterator[Step]:
    """Yield all that may happen next."""
    for number in range(len(state.workers)):
        yield from worker_steps(world, state, number)
    for number in range(len(state.operators)):
        yield from operator_steps(world, state, number)
    yield from late_steps(state)
    yield from _controls(state)
    yield Step("time goes on", _later(world, state))


def _later(world: World, state: State) -> State:
    return state._replace(
        workers=tuple(aged(world, worker) for worker in state.workers),
        operators=tuple(
            operator._replace(seen=tuple(seen and aged_observation(seen) for seen in operator.seen))
            for operator in state.operators
        ),
    )


def _controls(state: State) -> Iterator[Step]:
    for control in state.controls:
        rest = state._replace(controls=tuple(one for one in state.controls if one != control))
        for place, job in enumerate(state.jobs):
            after = asked(job, control)
            if after is not None and after != job:
                text = f"a user asks {control} of job {place}"
                yield Step(text, write(rest, place, after), is_fault=True)


def broken_promise(world: World, state: State) -> str | None:
    """Return the promise that a state breaks."""
    awake = [one for one in state.workers if one.stage == WORKING and not one.frozen]
    if len({one.job for one in awake}) < len(awake):
        return "no two workers run one job at once"
    for worker in awake:
        status = status_of(state.jobs[worker.job])
        held = status["phase"] == Phase.RUNNING and status["claim"] == worker.claim
        if not held and not view(state.jobs[worker.job]).control.cancel:
            return "who runs a job has its lease"
    if world.related and sum(view(job).admitted or _runs(job) for job in state.jobs) > 1:
        return "of jobs with one deduplication id at most one is admitted"
    return None


def _runs(job: Stored) -> bool:
    return phase_of(job) is Phase.RUNNING


def broken_step(before: Stored, after: Stored) -> str | None:
    """Return the promise that a version of a job and the next break."""
    was, now = view(before), view(after)
    claimed = was.phase is not Phase.RUNNING and now.phase is Phase.RUNNING
    if now.attempt != was.attempt + claimed or (now.claim != was.claim) != claimed:
        return "attempt and claim count the claims"
    if was.phase in FINAL_PHASES and now.phase is not was.phase:
        return "a job that has ended stays as it is"
    limit = now.effective.max_retries if now.effective else 0
    if now.retries > limit:
        return "no job is retried more often than its policy allows"
    return None


@dataclass
class _Graph:
    """The states by number, and the steps between them."""

    numbers: dict[State, int]
    states: list[State]
    came_from: "array[int]"
    edges: "array[int]"
    """Pairs of numbers: from, to; without faults and what users ask."""

    @classmethod
    def begin(cls, first: State) -> "_Graph":
        return cls({first: 0}, [first], array("i", [-1]), array("i"))

    def add(self, after: State, source: int, *, is_fault: bool) -> None:
        number = self.numbers.get(after)
        if number is None:
            number = self.numbers[after] = len(self.states)
            self.states.append(after)
            self.came_from.append(source)
        if not is_fault and number != source:
            self.edges.extend((source, number))

    def path(self, number: int) -> list[State]:
        found: list[State] = []
        while number >= 0:
            found.append(self.states[number])
            number = self.came_from[number]
        return found[::-1]


def search(world: World, max_states: int = MAX_STATES) -> Result:
    """Visit every state; stop at the first broken promise."""
    started = time.process_time()
    first = first_state(world)
    graph, taken = _Graph.begin(canonical(world, first)), 0

    def result(promise: str = "", path: Sequence[State] = ()) -> Result:
        finding = Finding(promise, tuple(_told(world, first, path))) if promise else None
        seconds = time.process_time() - started
        return Result(world, len(graph.states), taken, seconds, finding)

    for number, state in _queue(graph):
        broken = broken_promise(world, state)
        if broken is not None:
            return result(broken, graph.path(number))
        for step in steps_of(world, state):
            taken += 1
            after = canonical(world, step.state)
            broken = step.breaks or _broken_by(state, step.state)
            if broken:
                return result(broken, [*graph.path(number), after])
            graph.add(after, number, is_fault=step.is_fault)
        if len(graph.states) > max_states:
            raise TooManyStatesError(f"{world.name} has more than {max_states} states")
    stuck = _stuck(graph)
    return result() if stuck is None else result(CAN_END, graph.path(stuck))


def first_state(world: World) -> State:
    """Return the state in which all jobs are new; they have names where one asks for another."""
    numbers = range(len(world.specs)) if world.related else (0,) * len(world.specs)
    return start(world, tuple(map(new_job, numbers, world.specs)))


def _queue(graph: _Graph) -> Iterator[tuple[int, State]]:
    number = 0
    while number < len(graph.states):
        yield number, graph.states[number]
        number += 1


def _broken_by(before: State, after: State) -> str | None:
    if before.jobs is after.jobs:
        return None
    pairs = zip(before.jobs, after.jobs, strict=True)
    return next((why for was, now in pairs if was != now and (why := broken_step(was, now))), None)


def _stuck(graph: _Graph) -> int | None:
    """Return the first state from which no way leads to the end of all jobs."""
    heads = array("i", [-1]) * len(graph.states)
    following, edges = array("i", [-1]) * (len(graph.edges) // 2), graph.edges
    for edge in range(len(following)):
        target = edges[2 * edge + 1]
        following[edge], heads[target] = heads[target], edge
    ends = [number for number, state in enumerate(graph.states) if _is_over(state)]
    can_end = bytearray(len(graph.states))
    for number in ends:
        can_end[number] = 1
    while ends:
        edge = heads[ends.pop()]
        while edge >= 0:
            source = edges[2 * edge]
            if not can_end[source]:
                can_end[source] = 1
                ends.append(source)
            edge = following[edge]
    stuck = can_end.find(0)
    return None if stuck < 0 else stuck


def _is_over(state: State) -> bool:
    idle = all(worker.stage == IDLE for worker in state.workers)
    return idle and all(view(job).finished for job in state.jobs)


def _told(world: World, state: State, path: Sequence[State]) -> Iterator[str]:
    """Yield one line for each step of a path, told of the same jobs and workers throughout."""
    for number, target in enumerate(path[1:], 1):
        step = next(one for one in steps_of(world, state) if canonical(world, one.state) == target)
        state = plain(world, step.state)
        jobs = ", ".join(f"{view(job).phase.value} {view(job).claim}".strip() for job in state.jobs)
        yield f"{number:3}. {step.text}  [{jobs}]"
