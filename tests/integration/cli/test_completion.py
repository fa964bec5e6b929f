"""Tab in real shells: a command, an option, and the name of a job that is there."""

import os
import sys
from pathlib import Path

import pytest

from support.processes.shells import fish_offers, lacks, on_a_terminal
from support.processes.workers import WorkerNamespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

TYPED = {
    "asyncjob his": "asyncjob history ",
    "asyncjob queue pau": "asyncjob queue pause ",
    "asyncjob list --all": "asyncjob list --all-namespaces ",
    "asyncjob get only-": "asyncjob get only-here ",
    "asyncjob list --phase dead": "asyncjob list --phase DeadLetter ",
}


def shells(*names: str) -> list[object]:
    """Return parameters; a shell that is missing is left out, with the reason."""
    return [
        pytest.param(name, marks=pytest.mark.skipif(bool(lacks(name)), reason=lacks(name)))
        for name in names
    ]


@pytest.fixture
def environ(ns: WorkerNamespace) -> dict[str, str]:
    """Put our programs on the PATH, and a job into the cluster; the kubeconfig is there."""
    if "only-here" not in {job["metadata"]["name"] for job in ns.jobs()}:
        ns.create("only-here", "flaky.call", {"failures": 0})
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path}


@pytest.mark.parametrize("shell", shells("bash", "zsh"))
def test_tab_completes_commands_options_and_jobs(
    shell: str, environ: dict[str, str], tmp_path: Path
) -> None:
    with on_a_terminal(shell, tmp_path, environ) as line:
        assert {typed: line.completed(typed) for typed in TYPED} == TYPED


@pytest.mark.parametrize("shell", shells("fish"))
def test_fish_offers_commands_options_and_jobs(
    shell: str, environ: dict[str, str], tmp_path: Path
) -> None:
    offered = {typed: fish_offers(typed, tmp_path, environ) for typed in TYPED}
    assert offered == {typed: [line.split()[-1]] for typed, line in TYPED.items()}
