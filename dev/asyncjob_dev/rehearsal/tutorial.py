"""The tutorial "Your first job" from its text, with installed programs, without the clone.

Its handler and manifests are taken from the page. A control plane is started for it; operator and
worker are those of the environment, in a folder that has nothing but what the page says to write.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.environment import components
from asyncjob_dev.environment.components import install
from asyncjob_dev.environment.readiness import (
    await_enforcement,
    await_operator,
    await_worker,
    leader,
)
from asyncjob_dev.process import wait_until
from asyncjob_dev.rehearsal.distributions import StepError
from asyncjob_dev.rehearsal.environments import CleanEnvironment
from asyncjob_dev.supervisor import DevPods, DevWorker, WorkerSpec

PAGE: Final = Path("docs/tutorial/first-job.md")
HANDLER_FILE: Final = "hello.py"
_BLOCK: Final = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_HEREDOC: Final = re.compile(r"<<'END'\n(.*?)^END$", re.DOTALL | re.MULTILINE)
_JOB_SECONDS: Final = 90.0


def play_tutorial(root: Path, environment: CleanEnvironment, project: Path) -> str:
    """Follow the page; return what was seen. Raises DevError where something is not as it says."""
    text = (root / PAGE).read_text(encoding="utf-8")
    project.mkdir()
    (project / HANDLER_FILE).write_text(handler(text), encoding="utf-8")
    (project / "hello.yaml").write_text(manifest(text), encoding="utf-8")
    (project / "nobody.yaml").write_text(refused_manifest(text), encoding="utf-8")
    with _running(environment, project) as (plane, worker):
        plane.kubectl("apply", "-f", str(project / "hello.yaml"))
        _until(plane, "hello", lambda status: "checkpoint" in status, "its first checkpoint")
        worker.process.kill()  # started again in its pod, as on a node
        said = environment.run(
            *("asyncjob", "wait", "hello", f"--kubeconfig={plane.kubeconfig}"),
            f"--timeout={_JOB_SECONDS:.0f}s",
        )
        result = _status(plane, "hello")["result"]
        attempts = sorted({line.rpartition(", ")[2] for line in result})
        if attempts != ["in attempt 1", "in attempt 2"]:
            raise StepError(f"the result of `hello` tells of {attempts}: {said}")
        plane.kubectl("create", "-f", str(project / "nobody.yaml"))
        _until(plane, "hello-nobody", lambda status: status.get("phase") == "DeadLetter", "its end")
    return f"{len(result)} greetings, {' and '.join(attempts)}; a bad payload is a dead letter"


def handler(page: str) -> str:
    """Return the first handler of the page."""
    return _first(
        block for kind, block in _blocks(page) if kind == "python" and "WorkerApp" in block
    )


def manifest(page: str) -> str:
    """Return the first job of the page."""
    return _first(block for kind, block in _blocks(page) if kind == "yaml" and "AsyncJob" in block)


def refused_manifest(page: str) -> str:
    """Return the job whose payload the handler refuses."""
    return _first(found for found in _HEREDOC.findall(page) if "hello-nobody" in found)


def _blocks(page: str) -> list[tuple[str, str]]:
    return _BLOCK.findall(page)


def _first(found: Iterator[str]) -> str:
    for one in found:
        return one
    raise StepError(f"{PAGE} has no longer the block that is looked for")


@contextmanager
def _running(
    environment: CleanEnvironment, project: Path
) -> Iterator[tuple[ControlPlane, DevWorker]]:
    """Run a control plane, and operator and worker of the environment as pods."""
    app = f"{Path(HANDLER_FILE).stem}:app"
    with ControlPlane() as plane, DevPods(plane.api, project / "pods") as pods:
        install(plane)
        await_enforcement(plane.api, components.WORKER_ACCOUNT)
        before = leader(plane.api)
        operator = pods.start(
            _pod(
                environment, project, "operator", "asyncjob-operator", "run", "--namespace=default"
            )
        )
        await_operator(plane.api, operator, before)
        worker = pods.start(_pod(environment, project, "worker-1", "asyncjob-worker", "run", app))
        await_worker(plane.api, worker)
        yield plane, worker


def _pod(
    environment: CleanEnvironment, project: Path, name: str, program: str, *arguments: str
) -> WorkerSpec:
    return WorkerSpec(
        name=name,
        argv=(str(environment.program(program)), *arguments),
        service_account=program,
        cwd=project,
        env={"PATH": environment.variables["PATH"], "PYTHONPATH": os.fspath(project)},
        restart=True,
        grace=5.0,
    )


def _until(
    plane: ControlPlane, job: str, reached: Callable[[dict[str, Any]], bool], what: str
) -> None:
    wait_until(lambda: reached(_status(plane, job)), f"job {job}: {what}", within=_JOB_SECONDS)


def _status(plane: ControlPlane, job: str) -> dict[str, Any]:
    found = json.loads(plane.kubectl("get", "asyncjob", job, "--output=json").stdout)
    status: dict[str, Any] = found.get("status", {})
    return status
