"""What keeps an array from starting, at the limits: its time, what it depends on, and its start."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.arrays.observed import ArrayGate
from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.lifecycle.arrays.state import ArrayState, read_array
from asyncjob.lifecycle.job_view import DependencyView
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.arrays.gates import StartCheck, check_start, time_ahead
from asyncjob_operator.core.decision import DependencyHasFailed, DependencyMissing
from asyncjob_operator.core.dependencies import Dependencies, DependencyState, RelatedJob
from asyncjob_operator.core.policies.dead_letters import Missing
from support.objects.arrays import stored
from support.objects.snapshots import at, stamp

NEW = ArrayState(total=100)
STARTED = replace(NEW, phase=ArrayPhase.RUNNING, generation=1)
CANCELLED = replace(NEW, phase=ArrayPhase.CANCELLED)
NOTHING_MISSING = Missing(None, 0)
FETCH = DependencyView("fetch")
LATER: Any = {"notBefore": stamp(300)}


def checked(
    state: ArrayState = NEW,
    *jobs: RelatedJob | None,
    missing: Missing = NOTHING_MISSING,
    now: float = 5.0,
    **spec: Any,
) -> StartCheck:
    """Return whether the array may start; each of `jobs` is what one of its dependencies is."""
    dependencies = Dependencies(tuple(DependencyState(FETCH, one) for one in jobs))
    return check_start(read_array(stored(state, **spec)), dependencies, missing, at(now))


def fetch(phase: Phase) -> RelatedJob:
    return RelatedJob("ns", "fetch", "uid-f", phase)


def waits(message: str, until: float | None = None) -> StartCheck:
    return StartCheck(ArrayGate(ArrayReason.WAITING_FOR_DEPENDENCY, message), until)


@pytest.mark.parametrize("state", [STARTED, CANCELLED], ids=["started", "ended"])
def test_of_an_array_that_has_started_or_ended_nothing_is_asked_any_more(state: ArrayState) -> None:
    assert checked(state, fetch(Phase.DEAD_LETTER), **LATER) == StartCheck()


def test_an_array_that_waits_for_nothing_may_start() -> None:
    assert checked() == StartCheck()
    assert checked(NEW, fetch(Phase.SUCCEEDED), now=300, **LATER) == StartCheck()


def test_before_its_time_nothing_else_is_asked() -> None:
    gate = ArrayGate(ArrayReason.NOT_BEFORE, f"starts at {stamp(300)}")
    assert checked(NEW, fetch(Phase.DEAD_LETTER), now=280, **LATER) == StartCheck(gate, 300.0)
    assert checked(NEW, fetch(Phase.DEAD_LETTER), now=5, **LATER) == StartCheck(gate, 65.0)


def test_an_array_waits_for_a_job_and_fails_with_it() -> None:
    assert checked(NEW, fetch(Phase.RUNNING)) == waits("waiting for fetch")
    failed = fetch(Phase.DEAD_LETTER)
    gate = ArrayGate(ArrayReason.DEPENDENCY_FAILED, "cannot start: fetch is a dead letter")
    assert checked(NEW, failed) == StartCheck(gate, precondition=DependencyHasFailed(failed))


def test_a_job_that_does_not_exist_is_waited_for_until_its_time_is_up() -> None:
    message = "waiting for fetch (does not exist)"
    assert checked(NEW, None) == waits(message)
    assert checked(NEW, None, missing=Missing(1.0, 60.0)) == waits(message, 61.0)
    over = checked(NEW, None, missing=Missing(1.0, 60.0), now=61)
    assert over.gate is not None
    assert over.gate.reason is ArrayReason.DEPENDENCY_FAILED
    assert over.precondition == DependencyMissing("ns", "fetch", FETCH.kind)


@pytest.mark.parametrize(
    ("now", "ahead"), [(299.5, True), (300, False), (300.5, False)], ids=["before", "at", "after"]
)
def test_a_time_lies_ahead_until_it_is_reached(now: float, ahead: bool) -> None:
    array = read_array(stored(NEW, **LATER))
    assert time_ahead(array, at(now)) == (stamp(300) if ahead else None)
