"""Each of the 64 ordered pairs of phases, tried on the API server by operator and by worker.

What is legal is written down here by hand, so that an error in the table cannot hide itself.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from asyncjob.lifecycle.phase_change import change_phase
from asyncjob.lifecycle.phases import Phase
from support.cluster.api import Answer, Client
from support.driven import lives
from support.driven.lives import Life
from support.forbidden import ForbiddenSetup
from support.objects.builders import at, claim_of

pytestmark = pytest.mark.integration

LEGAL = {
    "Pending": {"Pending", "Queued", "Cancelled", "DeadLetter"},
    "Scheduled": {"Scheduled", "Queued", "Cancelled"},
    "Queued": {"Queued", "Running", "Scheduled", "Pending", "Cancelled", "DeadLetter"},
    "Running": {
        *("Running", "Succeeded", "Retrying", "Queued", "DeadLetter", "Cancelled"),
        *("Scheduled", "Pending"),
    },
    "Retrying": {"Retrying", "Queued", "Cancelled"},
    "Succeeded": {"Succeeded"},
    "DeadLetter": {"DeadLetter", "Queued", "Cancelled"},
    "Cancelled": {"Cancelled"},
}
LEGAL_FOR_THE_OPERATOR = {
    **LEGAL,
    "Queued": {"Queued", "Scheduled", "Pending", "Cancelled", "DeadLetter"},
    "Running": {"Running", "Retrying", "Queued", "DeadLetter", "Cancelled"},
}
"""It neither claims, succeeds nor parks."""

LEGAL_FOR_A_WORKER = {
    "Queued": {"Running"},
    "Running": LEGAL["Running"],
}
"""On a job that its own pod holds, or is just taking."""

PAIRS = [(source, target) for source in Phase for target in Phase]

DECISIONS: Mapping[tuple[str, str], lives.Decide] = {
    ("Running", "Succeeded"): lives.succeeded,
    ("Running", "Retrying"): lives.failed,
    ("Running", "Queued"): lives.released,
    ("Running", "DeadLetter"): lives.given_up,
    ("Running", "Cancelled"): lives.cancelled,
    ("Running", "Scheduled"): lives.parked,
    ("Running", "Pending"): lives.waiting_for_approval,
    ("Queued", "Scheduled"): lives.scheduled,
    ("Queued", "Pending"): lives.held_back,
    ("Queued", "Cancelled"): lives.dropped,
    ("Pending", "Cancelled"): lives.dropped,
    ("Scheduled", "Cancelled"): lives.dropped,
    ("Retrying", "Cancelled"): lives.dropped,
    ("DeadLetter", "Cancelled"): lives.dropped,
    ("Queued", "DeadLetter"): lives.timed_out,
    ("Pending", "DeadLetter"): lives.timed_out,
    ("Pending", "Queued"): lives.promoted,
    ("Scheduled", "Queued"): lives.promoted,
    ("Retrying", "Queued"): lives.promoted,
    ("DeadLetter", "Queued"): lives.redriven,
}

BY_THE_OPERATOR: Mapping[tuple[str, str], lives.Decide] = {
    **DECISIONS,
    ("Running", "Retrying"): lives.overran,
    ("Running", "Queued"): lives.evicted,
    ("Running", "DeadLetter"): lives.crashed,
}
"""For reasons of its own; the last of a job that may not crash at all."""

NUMBERS = itertools.count(1)

each_pair = pytest.mark.parametrize(
    ("source", "target"), PAIRS, ids=[f"{source}-{target}" for source, target in PAIRS]
)


def born(setup: ForbiddenSetup, source: Phase, target: Phase) -> Life:
    """Return a job in the source phase whose spec allows the target, if anything does."""
    name = f"from-{source}-to-{target}-{next(NUMBERS)}".lower()
    life = Life(setup.space.name, name, setup.space.admin, setup.worker)
    timed = source is Phase.SCHEDULED or (source, target) == (Phase.QUEUED, Phase.SCHEDULED)
    brittle = (source, target) == (Phase.RUNNING, Phase.DEAD_LETTER)
    life.create(
        **({"notBefore": at()} if timed else {}),
        **({"retryPolicy": {"maxCrashes": 0}} if brittle else {}),
    )
    life.bring(source)
    if target is Phase.CANCELLED and source is not Phase.SUCCEEDED:
        life.change_spec(cancel=True).object()
    if (source, target) == (Phase.DEAD_LETTER, Phase.QUEUED):
        life.change_spec(redrive=1).object()
    return life


def write(
    life: Life,
    by: Client,
    target: Phase,
    decisions: Mapping[tuple[str, str], lives.Decide] = DECISIONS,
) -> Answer:
    """Try the change of phase, as complete as the target asks for."""
    obj = life.read()
    source = Phase(obj["status"]["phase"])
    if target is Phase.RUNNING and source is not Phase.RUNNING:
        return by.merge(life.status_path, claim_of(obj, life.worker.pod, life.worker.pod_uid))
    if target is source:
        return by.merge(life.status_path, {"status": {"phase": target.value}})
    decide = decisions.get((source, target), lambda view: change_phase(view, target, now=at(9)))
    return life.move(decide, by, **_needed(target))


def _needed(target: Phase) -> dict[str, Any]:
    if target is not Phase.RETRYING:
        return {}
    return {"retryDelaySeconds": 1.0, "nextAttemptTime": at(10)}


@each_pair
def test_the_operator_may_take_exactly_its_transitions_of_the_table(
    shared_setup: ForbiddenSetup, source: Phase, target: Phase
) -> None:
    life = born(shared_setup, source, target)

    answer = write(life, shared_setup.operator, target, BY_THE_OPERATOR)

    check(life, answer, source, target, LEGAL_FOR_THE_OPERATOR)
    if not answer.accepted:
        holders = target in LEGAL[source]
        assert answer.status == (403 if holders else 422)
        assert ("(owner.transition)" if holders else "(transition.pair)") in answer.message


@each_pair
def test_a_worker_may_take_exactly_the_transitions_out_of_running_and_the_claim(
    shared_setup: ForbiddenSetup, source: Phase, target: Phase
) -> None:
    life = born(shared_setup, source, target)

    answer = write(life, shared_setup.worker.client, target)

    check(life, answer, source, target, LEGAL_FOR_A_WORKER)
    if not answer.accepted:
        assert answer.status in {403, 422}


@each_pair
def test_another_worker_may_make_no_transition_at_all(
    shared_setup: ForbiddenSetup, source: Phase, target: Phase
) -> None:
    life = born(shared_setup, source, target)

    answer = write(life, shared_setup.other.client, target)

    check(life, answer, source, target, {})


def check(
    life: Life,
    answer: Answer,
    source: Phase,
    target: Phase,
    legal: Mapping[str, set[str]],
) -> None:
    expected = target in legal.get(source, set())
    assert answer.accepted == expected, f"{answer.status}: {answer.message}"
    assert life.status()["phase"] == (target if expected else source)


def test_there_are_twenty_one_transitions() -> None:
    assert sum(len(targets - {source}) for source, targets in LEGAL.items()) == 21
    assert len(PAIRS) == 64
