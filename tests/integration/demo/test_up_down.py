"""`make up` and `make down`: what stays, what does not, and what is said when it cannot be."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from support.driven.jobs import until
from support.processes.commands import ROOT, Commands

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(600)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".dev"


def kubectl(folder: Path, *arguments: str) -> str:
    """Use it as the guide that `up` prints says."""
    done = subprocess.run(
        [str(folder / "bin" / "kubectl"), f"--cache-dir={folder / 'cache'}", *arguments],
        env={**os.environ, "KUBECONFIG": str(folder / "kubeconfig")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def up(commands: Commands, folder: Path, *options: str) -> str:
    done = commands.run("up", "--folder", str(folder), *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def down(commands: Commands, folder: Path, *options: str) -> str:
    done = commands.run("down", "--folder", str(folder), *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_me() -> tuple[list[str], str]:
    """Return the commands that the README gives for the gateway, and what the first answers."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    block = page.split("## Over HTTP")[1].split("```console\n")[1].split("```")[0]
    commands = re.findall(r"^\$ (curl .*(?:\n    .*)*)", block, re.MULTILINE)
    [answer] = re.findall(r"^{.*}$", block, re.MULTILINE)
    assert len(commands) == 4
    return commands, answer


def shell(command: str, port: int) -> str:
    done = subprocess.run(
        command.replace("localhost:8080", f"localhost:{port}"),
        shell=True,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout


def pids(folder: Path) -> dict[str, int]:
    state = json.loads((folder / "state.json").read_text())
    return {part["name"]: part["pid"] for part in state["parts"]}


def test_a_job_runs_on_what_up_started_and_is_there_the_next_time(
    commands: Commands, folder: Path
) -> None:
    assert "export KUBECONFIG=" in up(commands, folder)
    parts = {"etcd", "kube-apiserver", "operator", "gateway", "worker-1", "worker-2"}
    assert parts <= set(pids(folder))
    assert "already up" in up(commands, folder)
    other = commands.run("up", "--folder", str(folder), "--workers", "3")
    assert other.returncode == 1
    assert "not applied: WORKERS is 2, not 3" in other.stderr
    kubectl(folder, "apply", "-f", "examples/flaky-call.yaml")
    kubectl(folder, "wait", "--for=condition=Complete", "aj/flaky-call", "--timeout=30s")
    asked, told = read_me()
    port = json.loads((folder / "state.json").read_text())["gateway_port"]
    submitted = shell(asked[0], port)
    assert submitted == told
    job = json.loads(submitted)["jobId"]
    kubectl(folder, "wait", "--for=condition=Complete", f"aj/{job}", "--timeout=30s")
    assert json.loads(shell(asked[1], port))["status"] == "COMPLETED"
    assert until(lambda: json.loads(shell(asked[2], port))["items"], 5)[0]["id"] == job
    assert json.loads(shell(asked[3], port))["type"] == "/problems/not-cancellable"
    url = kubectl(folder, "config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
    assert down(commands, folder).startswith("stopped")
    commands.await_none_running()
    assert down(commands, folder).startswith("nothing was running")

    up(commands, folder, "--workers", "1")
    assert "worker-2" not in pids(folder)
    assert "Succeeded" in kubectl(folder, "get", "asyncjobs")
    assert url == kubectl(folder, "config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
    assert "forgotten" in down(commands, folder, "--wipe")
    commands.await_none_running()
    assert not (folder / "control-plane").exists()


def test_what_is_killed_is_started_again(commands: Commands, folder: Path) -> None:
    up(commands, folder)
    before = pids(folder)
    for name in ("worker-1", "kube-apiserver"):
        os.kill(before[name], signal.SIGKILL)
    deadline = time.monotonic() + 30
    while (now := pids(folder)) == before or None in now.values():
        assert time.monotonic() < deadline, now
        time.sleep(0.2)
    kubectl(folder, "wait", "--for=condition=Ready", "pod/worker-1", "--timeout=30s")
    kubectl(folder, "apply", "-f", "examples/flaky-call.yaml")
    kubectl(folder, "wait", "--for=condition=Complete", "aj/flaky-call", "--timeout=60s")
    down(commands, folder)
    commands.await_none_running()


def test_a_killed_supervisor_leaves_no_orphans_and_can_be_followed_by_another(
    commands: Commands, folder: Path
) -> None:
    up(commands, folder)
    os.kill(int((folder / "lock").read_text()), signal.SIGKILL)
    commands.await_none_running()
    status = commands.run("status", "--folder", str(folder))
    assert (status.returncode, status.stdout) == (1, "not up; `make up` starts it\n")
    assert down(commands, folder).startswith("nothing was running")
    up(commands, folder)
    kubectl(folder, "get", "asyncjobs")
    down(commands, folder)
    commands.await_none_running()


def test_an_app_that_cannot_be_imported_is_named_and_nothing_stays(
    commands: Commands, folder: Path
) -> None:
    done = commands.run("up", "--folder", str(folder), "--app", "nowhere:app")
    assert done.returncode == 1
    assert "cannot import nowhere" in done.stderr
    assert "Traceback" not in done.stderr
    commands.await_none_running()


def test_a_taken_port_is_named_and_nothing_stays(commands: Commands, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = commands.run("up", "--folder", str(folder), "--port", port)
    assert done.returncode == 1
    assert "port is taken" in done.stderr
    assert port in done.stderr
    commands.await_none_running()


def test_an_interrupted_start_is_taken_back(commands: Commands, folder: Path) -> None:
    with commands.start("up", "--folder", str(folder)) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "CRDs" in line:
                break
        assert len(commands.running()) > 2
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    commands.await_none_running()


def test_two_at_once_start_one_environment_and_both_end_when_it_is_ready(
    commands: Commands, folder: Path
) -> None:
    options = ("up", "--folder", str(folder))
    with commands.start(*options) as first, commands.start(*options) as second:
        said = [process.communicate(timeout=120) for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), said
    assert sorted("already up" in out for out, _ in said) == [False, True]
    assert all("worker-2" in out for out, _ in said)
    down(commands, folder)
    commands.await_none_running()


def test_up_after_an_interrupted_start_waits_for_its_end_and_starts(
    commands: Commands, folder: Path
) -> None:
    with commands.start("up", "--folder", str(folder)) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "CRDs" in line:
                break
        with commands.start("up", "--folder", str(folder)) as second:
            process.send_signal(signal.SIGINT)
            out, err = second.communicate(timeout=120)
        process.communicate(timeout=60)
    assert second.returncode == 0, err
    assert "worker-2" in out
    down(commands, folder)
    commands.await_none_running()


def test_a_start_whose_command_is_killed_is_taken_back(commands: Commands, folder: Path) -> None:
    with commands.start("up", "--folder", str(folder)) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.kill()
    commands.await_none_running(within=60)
