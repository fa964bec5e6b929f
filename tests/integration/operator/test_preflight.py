"""What the operator says when it cannot work."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.api import write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.installation import install
from support.driven.jobs import Jobs, until
from support.processes.operator import OperatorProcess, operator_kubeconfig, service_account

pytestmark = pytest.mark.integration

PROGRAM = str(Path(sys.executable).with_name("asyncjob-operator"))


def check(kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "check", f"--kubeconfig={kubeconfig}"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.fixture
def bare_plane() -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        yield running


@pytest.mark.timeout(180)  # a control plane, two operators and two checks, one after the other
def test_without_the_crds_it_says_what_to_do_waits_and_then_works(
    bare_plane: ControlPlane, tmp_path: Path
) -> None:
    checked = check(bare_plane.kubeconfig)
    assert checked.returncode == 1
    assert "not installed: asyncjobs.asyncjob.dev" in checked.stderr
    assert "kubectl apply -f crds/" in checked.stderr
    assert "the policy ownership.asyncjob.dev is not in force" in checked.stderr
    with OperatorProcess(bare_plane.kubeconfig, tmp_path / "impatient") as operator:
        until(lambda: "cannot work yet" in operator.logs(), 30)
        assert operator.health("/healthz") == "ok"
        assert operator.stop() == 0
    with OperatorProcess(bare_plane.kubeconfig, tmp_path / "log") as operator:
        until(lambda: "cannot work yet" in operator.logs(), 30)
        install(bare_plane)
        operator.until_ready(within=30)
        assert operator.stop() == 0
    assert check(bare_plane.kubeconfig).returncode == 0


def test_without_permissions_it_names_each_of_them(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    token = service_account(control_plane, Jobs(control_plane.api).namespace, "nobody")
    kubeconfig, user = tmp_path / "kubeconfig", {"token": token}
    write_kubeconfig(kubeconfig, url=control_plane.url, ca_file=control_plane.ca_file, user=user)
    checked = check(kubeconfig)
    assert checked.returncode == 1
    lines = checked.stderr.splitlines()
    for verb in ("operate asyncjobs", "patch asyncjobs.asyncjob.dev/status", "list asyncjobs"):
        assert any(line.startswith("error: no permission to " + verb) for line in lines), lines
    assert any(line.startswith("warning: no permission to list pods") for line in lines)


def test_without_a_cluster_it_says_how_to_connect(tmp_path: Path) -> None:
    checked = check(tmp_path / "absent")
    assert checked.returncode == 1
    assert "no cluster is configured" in checked.stderr


def test_without_a_cluster_it_does_not_run_and_says_how_to_connect(tmp_path: Path) -> None:
    with OperatorProcess(tmp_path / "absent", tmp_path / "log") as operator:
        assert operator.process
        assert operator.process.wait(30) == 1
    assert "Error: no cluster is configured" in operator.logs()
    assert "Traceback" not in operator.logs()


def test_with_the_operators_roles_nothing_is_missing(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    checked = check(operator_kubeconfig(control_plane, tmp_path / "kubeconfig"))
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_deleted_policy_fails_the_check_and_is_told_by_a_running_operator(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path
) -> None:
    missing = "the policy ownership.asyncjob.dev is not in force: any worker could write any job"
    with OperatorProcess(operator_access, tmp_path / "log", "--resync-interval=0.5") as operator:
        operator.until_ready()
        fragile_plane.kubectl("delete", "validatingadmissionpolicy", "ownership.asyncjob.dev")
        try:
            until(lambda: missing in operator.logs(), 10)
            checked = check(operator_access)
        finally:
            install(fragile_plane)
        way_out = "kubectl apply -f crds/ (asyncjob explain policy-missing)"
        wanted = f"error: {missing}; {way_out}\n"
        assert (checked.returncode, checked.stderr) == (1, wanted)
        until(lambda: "all policies are in force again" in operator.logs(), 10)
        assert operator.logs().count(missing) == 1
    assert check(operator_access).returncode == 0
