"""Control planes of real processes: side by side, put to faults, and gone without a trace."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from asyncjob_dev.api import Api
from asyncjob_dev.binaries import default_resolver
from asyncjob_dev.controlplane import ControlPlane, ControlPlaneOptions, datadir, processes
from asyncjob_dev.errors import (
    ApiStatusError,
    ApiUnavailableError,
    DataDirInUseError,
    KubectlError,
    ProcessDiedError,
    ProcessPortTakenError,
)
from asyncjob_dev.ports import free_ports
from support.processes.signals import ignoring

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
BARE = ControlPlaneOptions(with_controller_manager=False)


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def children(parent: int) -> list[int]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if parent_of(pid) == parent]


def parent_of(pid: int) -> int | None:
    """Return the parent of a process that is not a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else int(fields[1])


def eventually(condition: Callable[[], bool], within: float = 10.0) -> bool:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def in_foreground(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "asyncjob_dev.controlplane", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_stand_side_by_side_and_the_second_is_up_in_seconds(plane: ControlPlane) -> None:
    before = time.monotonic()
    with ControlPlane() as second:
        assert time.monotonic() - before < 20
        assert second.url != plane.url
        second.api.create(CONFIG_MAPS, config_map("only-here"))
        with pytest.raises(ApiStatusError, match="404"):
            plane.api.get(f"{CONFIG_MAPS}/only-here")
        with pytest.raises(ApiStatusError, match="401"):
            Api(second.url, ca_file=second.ca_file, token=plane.admin_token).get(CONFIG_MAPS)


def test_it_reports_the_pinned_version(plane: ControlPlane) -> None:
    """Or that of a program in KUBEBUILDER_ASSETS: `make test-kubernetes` brings others."""
    program = default_resolver().resolve("kube-apiserver")
    asked = [str(program.path), "--version"]
    told = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()[-1]
    assert plane.api.get("/version")["gitVersion"] == told
    assert program.version in {told, ""}


def test_kubectl_reaches_it_and_its_failures_are_errors(plane: ControlPlane) -> None:
    assert "default" in plane.kubectl("get", "namespaces", "-o", "name").stdout
    with pytest.raises(KubectlError, match="NotFound"):
        plane.kubectl("get", "configmap", "absent")
    assert plane.kubectl("get", "configmap", "absent", check=False).returncode == 1


def test_kubectl_takes_a_manifest_from_its_input(plane: ControlPlane) -> None:
    # An older kubectl takes all that begins with a brace for JSON.
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: piped}\n"
    assert "created" in plane.kubectl("apply", "-f", "-", input=manifest).stdout


def test_the_default_service_account_is_there_from_the_start(plane: ControlPlane) -> None:
    assert plane.api.get("/api/v1/namespaces/default/serviceaccounts/default")


def test_a_deleted_namespace_goes_away(plane: ControlPlane) -> None:
    plane.kubectl("create", "namespace", "short-lived")
    plane.kubectl("delete", "namespace", "short-lived", "--wait=true", "--timeout=30s")


def test_without_a_controller_manager_pods_can_still_be_created() -> None:
    with ControlPlane(BARE) as plane:
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
        plane.api.create("/api/v1/namespaces/default/pods", pod)
        assert len(children(os.getpid())) >= 2


def test_a_killed_api_server_comes_back_on_its_port_with_its_data() -> None:
    with ControlPlane(BARE) as plane:
        url = plane.url
        plane.api.create(CONFIG_MAPS, config_map("kept"))
        plane.kill_apiserver()
        with pytest.raises(ApiUnavailableError):
            plane.api.get(CONFIG_MAPS)
        plane.start_apiserver()
        assert plane.url == url
        assert plane.api.get(f"{CONFIG_MAPS}/kept")
        plane.restart_apiserver()
        assert plane.api.get(f"{CONFIG_MAPS}/kept")


def test_writes_hang_while_the_store_is_frozen_and_go_on_afterwards() -> None:
    with ControlPlane(BARE) as plane:
        impatient = Api(plane.url, ca_file=plane.ca_file, token=plane.admin_token, timeout=1.0)
        plane.pause_etcd()
        with pytest.raises(ApiUnavailableError, match="timed out"):
            impatient.create(CONFIG_MAPS, config_map("late"))
        plane.resume_etcd()
        assert eventually(lambda: plane.api.answers("/readyz"))
        assert plane.api.create(CONFIG_MAPS, config_map("afterwards"))


def test_it_stops_while_its_store_is_frozen() -> None:
    before = set(children(os.getpid()))
    with ControlPlane(BARE) as plane:
        plane.pause_etcd()
        assert set(children(os.getpid())) != before
    assert set(children(os.getpid())) == before


def test_a_data_directory_keeps_data_and_credentials(tmp_path: Path) -> None:
    options = ControlPlaneOptions(data_dir=tmp_path / "data", with_controller_manager=False)
    with ControlPlane(options) as first:
        token = first.admin_token
        first.api.create(CONFIG_MAPS, config_map("kept"))
        with pytest.raises(DataDirInUseError):
            ControlPlane(options).start()
    with ControlPlane(options) as again:
        assert again.admin_token == token
        assert again.api.get(f"{CONFIG_MAPS}/kept")


def test_a_taken_port_is_a_clear_error_and_leaves_nothing_running() -> None:
    before = set(children(os.getpid()))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = ControlPlaneOptions(
            api_port=taken.getsockname()[1], with_controller_manager=False
        )
        with pytest.raises(ProcessPortTakenError) as caught:
            ControlPlane(options).start()
    text = str(caught.value)
    assert "kube-apiserver ended with" in text
    assert "port is taken" in text
    assert "address already in use" in text
    assert set(children(os.getpid())) == before


def test_a_port_lost_to_another_program_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        lost = taken.getsockname()[1]
        first = [[lost, *free_ports(2)]]
        monkeypatch.setattr(
            processes, "free_ports", lambda count: first.pop() if first else free_ports(count)
        )
        with ControlPlane(BARE) as plane:
            assert first == []
            assert plane.api.get(CONFIG_MAPS)


def test_it_never_uses_the_store_of_another(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(plane.etcd.argv[3].rsplit(":", 1)[1])
    first = [[port, *free_ports(2)]]
    monkeypatch.setattr(
        processes, "free_ports", lambda count: first.pop() if first else free_ports(count)
    )
    name = plane.etcd.argv[1].removeprefix("--name=")
    assert processes.is_member(name, port)
    assert not processes.is_member("dev-of-somebody-else", port)
    with ControlPlane(BARE) as second:
        second.api.create(CONFIG_MAPS, config_map("mine"))
        assert not plane.api.answers(f"{CONFIG_MAPS}/mine")


def test_a_wrong_flag_shows_what_the_process_said() -> None:
    options = ControlPlaneOptions(
        apiserver_flags=("--no-such-flag",), with_controller_manager=False
    )
    with pytest.raises(ProcessDiedError, match=r"(?s)one of its flags.*--no-such-flag"):
        ControlPlane(options).start()


def test_a_killed_parent_leaves_no_process_and_its_folder_is_swept() -> None:
    with in_foreground() as program:
        assert program.stdout is not None
        kubeconfig = Path(program.stdout.readline().strip())
        processes_of_it = children(program.pid)
        assert len(processes_of_it) == 3
        program.kill()
    assert eventually(lambda: all(parent_of(pid) is None for pid in processes_of_it))
    assert kubeconfig.exists()
    datadir.remove_stale(kubeconfig.parent.parent)
    assert not kubeconfig.parent.exists()


@pytest.mark.usefixtures("in_a_terminal")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything_and_cleans_up(number: signal.Signals) -> None:
    ends_by(number)


def test_ctrl_c_stops_it_even_if_it_was_started_with_that_ignored() -> None:
    with ignoring(signal.SIGINT, signal.SIGHUP):
        ends_by(signal.SIGINT)


def ends_by(number: signal.Signals) -> None:
    """Start one as things are, send the signal, and see that nothing is left."""
    with in_foreground("--no-controller-manager") as program:
        assert program.stdout is not None
        kubeconfig = Path(program.stdout.readline().strip())
        processes_of_it = children(program.pid)
        program.send_signal(number)
        assert program.wait() == 0
    assert all(parent_of(pid) is None for pid in processes_of_it)
    assert not kubeconfig.parent.exists()


def test_the_command_line_reports_a_taken_port_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with in_foreground("--no-controller-manager", "--port", port) as program:
            _, errors = program.communicate(timeout=60)
    assert program.returncode == 1
    assert "port is taken" in errors
    assert "Traceback" not in errors
