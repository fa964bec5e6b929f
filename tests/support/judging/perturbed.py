"""What comes of cases of the perturbation, beside the undisturbed run, on one API server."""

import asyncio
from pathlib import Path
from typing import Final

from asyncjob_dev.controlplane import ControlPlane
from asyncjob_perturbation.calls import Call
from asyncjob_perturbation.case import Outcome, run_case, run_undisturbed
from asyncjob_perturbation.cluster import Cluster, running_cluster
from asyncjob_perturbation.plan import LEASE_SECONDS, MOVES, STALE_SECONDS, Case, Part, When
from asyncjob_perturbation.scenarios import SCENARIOS

PATIENCE: Final = LEASE_SECONDS + 7.0
"""Seconds in which a bug shows: longer than a lease takes to be found expired."""

PATIENCE_WHERE_IT_LAGS: Final = STALE_SECONDS + 7.0

CLAIM: Final = Call("PATCH asyncjobs/flaky/status Running", 1)


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
