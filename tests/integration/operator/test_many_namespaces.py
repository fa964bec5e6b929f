"""An install that operates in a hundred namespaces by name, as one for each tenant does."""

from functools import partial
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.driven.jobs import Jobs, now, until
from support.processes.operator import QUICK, OperatorProcess

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(180)]

NAMESPACES = 100


def admitted(jobs: Jobs) -> bool:
    return jobs.status("seen").get("admitted") is True


def test_it_starts_leads_and_acts_in_each_of_a_hundred_namespaces(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path
) -> None:
    tenants = [Jobs(fragile_plane.api) for _ in range(NAMESPACES)]
    for jobs in tenants:
        jobs.create("before", notBefore=now(3600))
    names = [f"--namespace={jobs.namespace}" for jobs in tenants]
    home = f"--lease-namespace={tenants[0].namespace}"
    with OperatorProcess(operator_access, tmp_path / "log", *QUICK, *names, home) as operator:
        operator.until_ready(within=60).until_leading(within=15)
        for jobs in tenants:
            jobs.until_phase("before", "Scheduled", within=30)
            jobs.create("seen", notAfter=now(3600))
        for jobs in tenants:
            until(partial(admitted, jobs), 15)
        assert "no answer" not in operator.logs()
        assert operator.stop() == 0
