"""The table of transitions, as those read it who make rules and documentation of it."""

from itertools import product

import pytest

from asyncjob.lifecycle.phases import FINAL_PHASES, Phase, Reason
from asyncjob.lifecycle.transitions import (
    TRANSITIONS,
    Actor,
    StatusCounter,
    find_transition,
    targets_of,
)


def test_a_transition_is_found_by_its_phases_and_there_is_none_that_is_not_in_the_table() -> None:
    listed = {(one.source, one.target): one for one in TRANSITIONS}
    assert len(listed) == len(TRANSITIONS)
    for pair in product(Phase, Phase):
        assert find_transition(*pair) is listed.get(pair)


def test_a_transition_tells_who_makes_it_why_and_what_it_counts() -> None:
    released = find_transition(Phase.RUNNING, Phase.QUEUED)
    assert released
    assert released.actors == {Actor.WORKER, Actor.OPERATOR}
    assert released.reasons == {
        Reason.RELEASED,
        Reason.WORKER_GONE,
        Reason.LEASE_EXPIRED,
        Reason.WORKER_CRASHED,
    }
    assert released.incremented == {StatusCounter.RELEASES, StatusCounter.CRASHES}
    claimed = find_transition(Phase.QUEUED, Phase.RUNNING)
    assert claimed
    assert claimed.actors == {Actor.WORKER}
    assert not claimed.reasons
    assert claimed.incremented == {StatusCounter.ATTEMPT}


@pytest.mark.parametrize(
    ("source", "targets"),
    [
        (Phase.DEAD_LETTER, (Phase.QUEUED, Phase.CANCELLED)),
        (Phase.SCHEDULED, (Phase.CANCELLED, Phase.QUEUED)),
    ],
)
def test_the_phases_that_follow_one_are_in_the_tables_order(
    source: Phase, targets: tuple[Phase, ...]
) -> None:
    assert targets_of(source) == targets


def test_nothing_follows_a_final_phase() -> None:
    assert {phase for phase in Phase if not targets_of(phase)} == FINAL_PHASES
