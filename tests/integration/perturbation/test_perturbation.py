"""A part that is killed at a request leaves the same end; with a bug planted it does not.

`make perturb` runs all cases. Here are a few, to hold that command to what it says, and one with a
bug that it has to find.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from asyncjob_dev.controlplane import ControlPlane
from asyncjob_perturbation.calls import Call
from asyncjob_perturbation.case import Outcome, run_case, run_undisturbed
from asyncjob_perturbation.cluster import Cluster, running_cluster
from asyncjob_perturbation.plan import LEASE_SECONDS, MOVES, STALE_SECONDS, Case, Part, When
from asyncjob_perturbation.processes import prepare
from asyncjob_perturbation.scenarios import SCENARIOS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PATIENCE: Final = LEASE_SECONDS + 7.0
"""Seconds in which a bug shows: longer than a lease takes to be found expired."""

PATIENCE_WHERE_IT_LAGS: Final = STALE_SECONDS + 7.0

CLAIM: Final = Call("PATCH asyncjobs/flaky/status Running", 1)
SUCCESS: Final = Call("PATCH asyncjobs/flaky/status Succeeded", 1)


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    prepare()
    with ControlPlane() as plane:
        yield plane


async def outcomes(
    plane: ControlPlane, folder: Path, scenario: str, part: Part, cases: list[tuple[Case, str]]
) -> list[Outcome]:
    """Return what comes of cases, each with a bug or none, beside the undisturbed run."""
    lags = any(case.when in MOVES for case, _ in cases)
    async with running_cluster(plane, folder, lags=lags) as cluster:
        undisturbed = await run_undisturbed(cluster, SCENARIOS[scenario], part)
        assert not undisturbed.failed, undisturbed.told
        return await asyncio.gather(*(one(cluster, case, bug, undisturbed) for case, bug in cases))


async def one(cluster: Cluster, case: Case, bug: str, undisturbed: Outcome) -> Outcome:
    scenario = SCENARIOS[case.scenario]
    patience = PATIENCE_WHERE_IT_LAGS if case.when in MOVES else PATIENCE
    patience = patience if bug else 45.0
    return await run_case(cluster, scenario, case, undisturbed.state, bug=bug, patience=patience)


def at(call: Call, when: When) -> Case:
    return Case("retry", Part.WORKER, 1, call, when)


async def test_kills_and_a_lost_answer_come_to_the_same_end_and_not_where_a_bug_is_planted(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    cases = [
        (at(CLAIM, When.BEFORE), ""),
        (at(CLAIM, When.AFTER), ""),
        (at(SUCCESS, When.LOST), ""),
        (at(CLAIM, When.AFTER), "no recovery"),
    ]
    came = await outcomes(control_plane, tmp_path, "retry", Part.WORKER, cases)
    assert all(outcome.reached for outcome in came)
    assert [outcome.failed for outcome in came] == [False, False, False, True], [
        (outcome.differences, outcome.broken) for outcome in came
    ]
    spent = [outcome.state["asyncjobs/flaky"]["attempt"] for outcome in came[:3]]
    assert spent == [3, 4, 3]
    told = "\n".join(came[3].told)
    assert "asyncjobs/flaky  Running" in told
    assert "last lines of the operator" in told


async def test_a_worker_that_is_shown_the_past_claims_what_it_is_shown_later(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    cases = [
        (at(CLAIM, When.STALE), ""),
        (at(CLAIM, When.STALE_START), ""),
        (at(CLAIM, When.STALE_START), "lost claims for good"),
    ]
    came = await outcomes(control_plane, tmp_path, "retry", Part.WORKER, cases)
    assert all(outcome.reached for outcome in came)
    assert [outcome.failed for outcome in came] == [False, False, True], [
        (outcome.differences, outcome.broken, outcome.told) for outcome in came
    ]
    assert [str(one) for one in came[2].differences if "phase" in one.where] == [
        "asyncjobs/flaky phase: expected 'Succeeded', came 'Queued'"
    ]
