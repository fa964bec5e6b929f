"""A control plane with an operator and a worker of the examples' handlers, for all tests here."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asyncjob.cli.entry import run
from asyncjob_dev.api import write_kubeconfig
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.installation import install
from support.processes.operator import QUICK, OperatorProcess
from support.processes.workers import ROOT, WorkerNamespace, worker_namespace

Say = Callable[..., str]


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Say:
    """Run a command in this process, check its exit code, and return what it printed."""

    def command(*words: str, code: int = 0) -> str:
        capfd.readouterr()
        got = run(words, "asyncjob")
        out, err = capfd.readouterr()
        assert got == code, out + err
        return out + err

    return command


@pytest.fixture(scope="package")
def control_plane() -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        install(plane)
        yield plane


@pytest.fixture(scope="package")
def operator(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with OperatorProcess(control_plane.kubeconfig, log, *QUICK, "--no-retention") as running:
        yield running.until_ready().until_leading()


@pytest.fixture(scope="package")
def ns(
    control_plane: ControlPlane,
    operator: OperatorProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[WorkerNamespace]:
    """Prepare a namespace with a worker at work."""
    folder = tmp_path_factory.mktemp("namespace")
    (folder / "examples").symlink_to(ROOT / "examples")
    with worker_namespace(control_plane, folder) as prepared:
        worker = prepared.start_worker(
            "worker-0", "--concurrency=4", app="examples.handlers:app", cwd=folder
        )
        prepared.until_log(worker, "worker started")
        yield prepared


@pytest.fixture(scope="package")
def kubeconfig(ns: WorkerNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a kubeconfig of who may do everything, in that namespace."""
    plane = ns.plane
    path = tmp_path_factory.mktemp("access") / "kubeconfig"
    user = {"token": plane.admin_token}
    write_kubeconfig(path, url=plane.url, ca_file=plane.ca_file, user=user, namespace=ns.namespace)
    return path


@pytest.fixture(autouse=True)
def around(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands find the cluster."""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    for name in ("ASYNCJOB_SERVER", "ASYNCJOB_TOKEN", "POD_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
