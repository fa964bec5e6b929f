"""Who sees no jobs does not lead: another takes over, and health says why."""

from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.driven.jobs import Jobs, until
from support.processes.operator import QUICK, OperatorProcess

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def test_a_leader_whose_watch_hangs_hands_over_and_says_so(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path
) -> None:
    jobs = Jobs(fragile_plane.api)
    home = (f"--namespace={jobs.namespace}", f"--lease-namespace={jobs.namespace}")
    options = (*QUICK, *home, "--resync-interval=1")
    blind = OperatorProcess(operator_access, tmp_path / "blind", *options)
    blind.run_module("support.programs.blind_operator", {})
    with blind:
        blind.until_ready(within=60).until_leading()
        with OperatorProcess(operator_access, tmp_path / "standby", *options) as standby:
            standby.until_ready(within=60).until_leading(within=40)
            assert "handing leadership over" in blind.logs()
            until(lambda: "nothing of the watch of jobs" in blind.health("/readyz"), 30)
            until(lambda: "has made no attempt for" in blind.health("/healthz"), 30)
            assert standby.health("/readyz") == standby.health("/healthz") == "ok"
            jobs.create("unwanted", cancel=True)
            jobs.until_phase("unwanted", "Cancelled", within=15)
