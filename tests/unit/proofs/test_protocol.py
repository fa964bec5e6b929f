"""Small worlds keep every promise; a wrong function of worker or operator is found out."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.claim import claim_patch
from asyncjob_dev.proofs import short_model
from asyncjob_dev.proofs.protocol import operators, server, workers
from asyncjob_dev.proofs.protocol import search as searching
from asyncjob_dev.proofs.protocol.search import TooManyStatesError, first_state, search, steps_of
from asyncjob_dev.proofs.protocol.state import State, World
from asyncjob_dev.proofs.protocol.symmetry import canonical, mirrored_state, plain, reordered_jobs
from asyncjob_dev.proofs.protocol.worlds import (
    DUPLICATES,
    LONG_WORLDS,
    ONE_FAULT,
    TINY,
    TWINS,
    TWO_JOBS,
    WORLDS,
)
from asyncjob_operator.core.decide import POLICY_CHAINS, decide
from asyncjob_operator.core.policies.deduplication import cancel_duplicate
from asyncjob_operator.core.policies.gates import promote_retrying
from asyncjob_operator.core.policies.recovery import recover
from asyncjob_worker.leases import patches
from asyncjob_worker.leases.ownership import Ownership, OwnershipCheck

pytestmark = pytest.mark.timeout(240)

CALM_DUPLICATES = replace(DUPLICATES, faults=0)
FAILING = replace(TINY, outcomes=("succeed", "fail"))

FOUND = {
    "fence": "a fenced attempt changes nothing",
    "verify": "who runs a job has its lease",
    "patience": "who runs a job has its lease",
    "stop": "who runs a job has its lease",
    "look": "of jobs with one deduplication id at most one is admitted",
}


def test_the_smallest_world_keeps_every_promise() -> None:
    result = search(TINY)
    assert result.finding is None
    assert result.states > 3_000


@pytest.mark.parametrize("precaution", TWINS)
def test_without_a_precaution_the_search_finds_what_it_is_for(precaution: str) -> None:
    finding = search(TWINS[precaution]).finding
    assert finding is not None
    assert FOUND[precaution] in finding.promise
    assert len(finding.trace) > 1
    assert not any("?" in line.split("[")[0] for line in finding.trace)


def test_a_story_ends_with_the_step_that_breaks_the_promise() -> None:
    finding = search(TWINS["fence"]).finding
    assert finding is not None
    *_, before, last = finding.trace
    assert before.endswith("claims job 0  [Running 2-of-0/1]")
    assert last.endswith("a late request of worker 0 for job 0 arrives  [Succeeded 2-of-0/1]")


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Forget every remembered answer before and after a function is replaced."""
    forget()
    yield
    forget()


def forget() -> None:
    for module in (server, workers, operators, searching):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def leave_out(monkeypatch: pytest.MonkeyPatch, policy: Any) -> None:
    """Have the operator decide without one of its policies."""
    for phase, chain in POLICY_CHAINS.items():
        monkeypatch.setitem(POLICY_CHAINS, phase, tuple(one for one in chain if one != policy))


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize(
    ("policy", "world"),
    [(recover, TINY), (promote_retrying, FAILING), (cancel_duplicate, CALM_DUPLICATES)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_operator_that_forgets_a_policy_leaves_jobs_that_never_end(
    monkeypatch: pytest.MonkeyPatch, policy: Any, world: World
) -> None:
    leave_out(monkeypatch, policy)
    finding = search(world).finding
    assert finding is not None
    assert finding.promise == "every accepted job can still end"


@pytest.mark.usefixtures("forgetful")
def test_an_operator_that_sees_no_duplicates_admits_none_of_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def blind(snapshot: Any, now: Any) -> Any:
        return decide(replace(snapshot, live_duplicate=None), now)

    monkeypatch.setattr(operators, "decide", blind)
    finding = search(CALM_DUPLICATES).finding
    assert finding is not None
    assert finding.promise == "every accepted job can still end"


@pytest.mark.usefixtures("forgetful")
def test_an_operator_that_believes_a_lease_is_over_at_once_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hasty(snapshot: Any, now: Any) -> Any:
        return decide(snapshot, replace(now, monotonic=now.monotonic + 1e6))

    monkeypatch.setattr(operators, "decide", hasty)
    finding = search(TINY).finding
    assert finding is not None
    assert finding.promise == "who runs a job has its lease"


@pytest.mark.usefixtures("forgetful")
def test_a_worker_that_does_not_test_its_claim_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patches, "_fence_operations", lambda _held: [])
    finding = search(TINY).finding
    assert finding is not None
    assert "a fenced attempt changes nothing" in finding.promise


@pytest.mark.usefixtures("forgetful")
def test_a_worker_that_never_claims_right_leaves_jobs_that_never_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rules refuse its claims, all of them."""

    def stale(candidate: Any, *args: Any, **named: Any) -> Any:
        return claim_patch(replace(candidate, attempt=candidate.attempt + 1), *args, **named)

    monkeypatch.setattr(workers, "claim_patch", stale)
    finding = search(TINY).finding
    assert finding is not None
    assert finding.promise == "every accepted job can still end"


@pytest.mark.usefixtures("forgetful")
def test_a_worker_that_believes_it_is_fenced_whenever_unsure_still_ends_its_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It costs an attempt, and breaks no promise."""

    async def pessimist(*_args: Any) -> OwnershipCheck:
        return OwnershipCheck(Ownership.FENCED)

    monkeypatch.setattr(workers, "check_ownership", pessimist)
    assert search(TINY).finding is None


def visited(world: World, count: int) -> Iterator[State]:
    """Yield states, each with the names that it came to."""
    states = {first_state(world): None}
    for _ in range(count):
        state = next(iter(states))
        del states[state]
        yield state
        states |= dict.fromkeys(plain(world, step.state) for step in steps_of(world, state))


def test_whatever_the_names_of_jobs_and_workers_the_same_can_happen() -> None:
    for state in visited(TWO_JOBS, 300):
        ways = {canonical(TWO_JOBS, step.state) for step in steps_of(TWO_JOBS, state)}
        swapped = reordered_jobs(state, (1, 0))
        for alike in (mirrored_state(state), swapped, canonical(TWO_JOBS, state)):
            assert ways == {canonical(TWO_JOBS, step.state) for step in steps_of(TWO_JOBS, alike)}


def test_a_search_that_grows_too_large_says_so() -> None:
    with pytest.raises(TooManyStatesError, match="one-fault has more than 100 states"):
        search(ONE_FAULT, max_states=100)


def test_the_worlds_have_names_of_their_own() -> None:
    names = [world.name for world in (*WORLDS, *LONG_WORLDS, *TWINS.values())]
    assert len(names) == len(set(names))


def test_the_short_model_keeps_its_promises() -> None:
    states = short_model.check()
    assert isinstance(states, int)
    assert states > 500


@pytest.mark.parametrize("rule", short_model.RULES)
def test_each_rule_of_the_short_model_is_needed(rule: str) -> None:
    twin = short_model.check(without=rule)
    assert isinstance(twin, short_model.Finding)
    assert twin.trace


def test_the_report_of_the_short_model_tells_each_story() -> None:
    lines = list(short_model.report())
    assert lines[0].endswith("every promise kept")
    assert sum(line.startswith("without ") for line in lines) == len(short_model.RULES)
