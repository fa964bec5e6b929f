"""Who sees no jobs does not lead: another takes over, and health says why."""

from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.jobs import Jobs, until
from support.operator import QUICK, OperatorProcess

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def test_a_leader_whose_watch_hangs_hands_over_and_says_so(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path
) -> None:
    jobs = Jobs(fragile_plane.api)
    home = (f"--namespace={jobs.namespace}", f"--lease-namespace={jobs.namespace}")
    options = (*QUICK, *home, "--resync-interval=1")
    blind = OperatorProcess(operator_access, tmp_path / "blind", *options)
    blind.run_module("support.blind_operator", {})
    with blind, OperatorProcess(operator_access, tmp_path / "standby", *options) as standby:
        blind.until_ready(within=60)
        until(lambda: blind.leads() or standby.leads(), 20, "a leader")
        standby.until_leading(within=40)
        assert not blind.leads()
        until(lambda: "watch of jobs" in blind.health("/readyz"), 30, "an unready replica")
        until(lambda: "watch of jobs" in blind.health("/healthz"), 30, "a replica to restart")
        assert standby.health("/readyz") == standby.health("/healthz") == "ok"
        jobs.create("unwanted", cancel=True)
        jobs.until_phase("unwanted", "Cancelled", within=15)


def test_an_outage_of_the_api_server_is_no_reason_to_restart(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path
) -> None:
    jobs = Jobs(fragile_plane.api)
    home = (f"--namespace={jobs.namespace}", f"--lease-namespace={jobs.namespace}")
    options = (*QUICK, *home, "--backoff-max=1", "--resync-interval=2")
    operator = OperatorProcess(operator_access, tmp_path / "log", *options)
    operator.run_module("support.impatient_operator", {})
    with operator:
        operator.until_ready().until_leading()
        fragile_plane.kill_apiserver()
        try:
            until(lambda: "nothing of the watch" in operator.health("/readyz"), 30, "unreadiness")
            assert operator.health("/healthz") == "ok"
            assert not operator.leads()
        finally:
            fragile_plane.start_apiserver()
        operator.until_ready(within=40).until_leading()
