"""A program that cannot start says why in one line, with a code, and shows no traceback."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob.explanations.catalog import explain
from asyncjob.explanations.texts import Kind

POD = {"POD_NAME": "worker-0", "POD_UID": "9b2c"}
BUILT_IN = "asyncjob_worker.builtin:app"
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: a, user: {token: a}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
"""


@pytest.fixture(scope="module")
def taken() -> Iterator[int]:
    """Return a port that another program has."""
    with socket.create_server(("0.0.0.0", 0)) as other:
        yield other.getsockname()[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a kubeconfig, and a certificate that is none."""
    made = tmp_path_factory.mktemp("start-up")
    (made / "config").write_text(KUBECONFIG, encoding="utf-8")
    (made / "cert.pem").write_text("no certificate", encoding="utf-8")
    return made


def start(
    folder: Path, program: str, *arguments: str, kubeconfig: str = "config"
) -> tuple[int, str]:
    """Return how a program ends, and its last line."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / program), *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": kubeconfig, **POD},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done.returncode, done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("asyncjob-worker", ["run", BUILT_IN, "--health-port=PORT"]),
        ("asyncjob-operator", ["run", "--metrics-port=PORT"]),
        ("asyncjob-operator", ["run", "--metrics-port=0", "--health-port=PORT"]),
        ("asyncjob-gateway", ["run", "--port=PORT"]),
        ("asyncjob-gateway", ["run", "--port=0", "--metrics-port=PORT"]),
    ],
)
def test_a_taken_port_is_named(
    folder: Path, taken: int, program: str, arguments: list[str]
) -> None:
    code, said = start(folder, program, *(one.replace("PORT", str(taken)) for one in arguments))
    assert said.startswith("Error: cannot serve ")
    assert f"port {taken}: " in said
    assert said.endswith("(asyncjob explain port-taken)")
    assert code == 1
    flag = arguments[-1].partition("=")[0]
    assert f"choose another {flag}" in said


def test_a_certificate_that_is_none_is_named(folder: Path) -> None:
    pair = ("--tls-cert=cert.pem", "--tls-key=cert.pem")
    code, said = start(folder, "asyncjob-gateway", "run", "--port=0", *pair)
    assert said.startswith("Error: --tls-cert, --tls-key: ")
    assert said.endswith("(asyncjob explain configuration)")
    assert code == 1


@pytest.mark.parametrize("program", ["asyncjob-worker", "asyncjob-operator", "asyncjob-gateway"])
def test_no_cluster_is_said(folder: Path, program: str) -> None:
    code, said = start(folder, program, "run", kubeconfig="nothing")
    assert said.endswith("(asyncjob explain no-cluster)")
    assert code == 1


def test_what_keeps_the_operator_from_working_has_a_code(folder: Path) -> None:
    code, said = start(folder, "asyncjob-operator", "check")
    assert said.startswith("error: the API server at http://127.0.0.1:9 cannot be asked")
    assert said.endswith("(asyncjob explain unavailable)")
    assert code == 1


@pytest.mark.parametrize("program", ["", "worker-", "operator-", "gateway-"])
@pytest.mark.parametrize("code", [0, 1, 2])
def test_every_program_has_its_exit_codes_explained(program: str, code: int) -> None:
    assert [one.kind for one in explain(f"{program}exit-{code}")] == [Kind.EXIT_CODE]
