"""States that behave alike count as one: names of jobs, workers and replicas mean nothing.

Without this a world with two jobs and two workers has about four times as many states.
"""

import re
from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import cache
from itertools import permutations
from typing import Final, TypeVar

from asyncjob.lifecycle.phases import FINAL_PHASES
from asyncjob_dev.proofs.protocol.operators import remembered, seen_at_once
from asyncjob_dev.proofs.protocol.server import Stored, phase_of, settled
from asyncjob_dev.proofs.protocol.state import IDLE, Operator, State, Worker, World
from asyncjob_operator.core.snapshot import Observation

Part = TypeVar("Part", bound=Hashable)

PAIR: Final = 2


def canonical(world: World, state: State) -> State:
    """Return the state that stands for all that behave alike."""
    state = plain(world, state)
    if world.related:
        return _shared_parts(state)
    return _shared_parts(_named_alike(state._replace(jobs=_forgetting(world, state))))


def plain(world: World, state: State) -> State:
    """Return the state with what replicas remember; nothing is renamed."""
    known = seen_at_once if world.attentive else remembered
    return state._replace(
        operators=tuple(
            operator._replace(seen=tuple(map(known, operator.seen, state.jobs)))
            for operator in state.operators
        )
    )


def _forgetting(world: World, state: State) -> tuple[Stored, ...]:
    """Return the jobs; of one that stays as it is, and that nobody works on, only its end is kept.

    Worlds that lack a precaution keep everything: there a late request may change such a job.
    """
    if state.controls or world.without:
        return state.jobs
    wanted = {worker.job for worker in state.workers if worker.stage != IDLE}
    wanted.update(request.job for request in state.late)
    return tuple(
        settled(job) if phase_of(job) in FINAL_PHASES and place not in wanted else job
        for place, job in enumerate(state.jobs)
    )


def _named_alike(state: State) -> State:
    """Return the first, in some order, of all states that differ in names."""
    found = list(_orders(state))
    if len(state.workers) == PAIR:
        one, other = map(_doing, state.workers)
        mirrored = [] if one < other else list(_orders(mirrored_state(state)))
        found = mirrored if other < one else [*found, *mirrored]
    return found[0] if len(found) == 1 else min(found, key=_total)


def _doing(worker: Worker) -> Worker:
    """Return what a worker does, without names."""
    return worker._replace(job=0, seen="", claim="")


def _total(state: State) -> tuple[object, ...]:
    return state.jobs, state.workers, sorted(map(_order, state.operators)), sorted(state.late)


def _orders(state: State) -> Iterator[State]:
    """Yield the state with its jobs in order; more than one where jobs are equal."""
    wanted = sorted(state.jobs)
    for order in permutations(range(len(wanted))):
        if [state.jobs[place] for place in order] == wanted:
            yield reordered_jobs(state, order)


def reordered_jobs(state: State, order: tuple[int, ...]) -> State:
    """Return the state with its jobs in another order."""
    if order == tuple(range(len(order))):
        return state
    to = {old: new for new, old in enumerate(order)} | {-1: -1}
    return state._replace(
        jobs=tuple(state.jobs[place] for place in order),
        workers=tuple(worker._replace(job=to[worker.job]) for worker in state.workers),
        operators=tuple(_reordered(operator, order) for operator in state.operators),
        late=frozenset(one._replace(job=to[one.job]) for one in state.late),
    )


def _reordered(operator: Operator, order: tuple[int, ...]) -> Operator:
    return operator._replace(
        seen=tuple(operator.seen[place] for place in order),
        pending=tuple(operator.pending[place] for place in order),
    )


def mirrored_state(state: State) -> State:
    """Return the state with the names of both workers exchanged."""
    return state._replace(
        jobs=tuple(map(_mirrored, state.jobs)),
        workers=tuple(
            worker._replace(seen=_mirrored(worker.seen), claim=_mirrored(worker.claim))
            for worker in reversed(state.workers)
        ),
        operators=tuple(
            operator._replace(seen=tuple(map(_mirrored_view, operator.seen)))
            for operator in state.operators
        ),
        late=frozenset(
            one._replace(
                patch=_mirrored(one.patch),
                by=1 - one.by,
                claim=_mirrored(one.claim),
                version=_mirrored(one.version),
            )
            for one in state.late
        ),
    )


_OF_A_WORKER: Final = re.compile(r"(pod-|pod-uid-|-of-|T00:00:1)([01])")
"""The number of a worker in names, UIDs and claims, and in the times by its clock."""


@cache
def _mirrored(text: str) -> str:
    return _OF_A_WORKER.sub(lambda found: found[1] + "10"[int(found[2])], text)


@cache
def _mirrored_view(seen: Observation | None) -> Observation | None:
    if seen is None:
        return None
    phase, attempt, claim, since, delay = seen.phase_entry
    entry = (phase, attempt, _mirrored(claim), since and _mirrored(since), delay)
    return replace(seen, phase_entry=entry)


def _shared_parts(state: State) -> State:
    """Return the state, its replicas in order, its parts shared with those that were equal."""
    operators = map(_shared, state.operators)
    return state._replace(
        workers=_shared(state.workers), operators=tuple(sorted(operators, key=_order))
    )


@cache
def _shared(part: Part) -> Part:
    """Return the first part that was equal: most states differ in few of theirs."""
    return part


@cache
def _order(operator: Operator) -> str:
    return repr(operator)
