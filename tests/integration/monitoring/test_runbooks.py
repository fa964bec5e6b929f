"""What a runbook says to run does run, on a real API server, and does what is said of it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from asyncjob.names import ARRAYS, array_path, collection_path
from asyncjob_dev.binaries import resolve
from support.cluster.promql import ALERTS_FILE, query_problems
from support.driven.jobs import until
from support.objects.builders import array
from support.processes.operator import OperatorProcess, Replicas
from support.processes.workers import WorkerNamespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(150)]

RUNBOOKS = ALERTS_FILE.parents[3] / "docs" / "runbooks"
_CODE = re.compile(r"`((?:kubectl|asyncjob(?:-operator)?) [^`]*)`")
_QUERY = re.compile(r"`((?:sum|max|histogram_quantile)[ (][^`]*|asyncjob_\w+(?:\{[^`]*\})?)`")

NEEDS_A_NODE = "kubectl logs "


def found(pattern: re.Pattern[str]) -> list[str]:
    """Return what the pages have of it, each once, a line break read as a space."""
    pages = [page.read_text(encoding="utf-8") for page in sorted(RUNBOOKS.glob("*.md"))]
    return list(dict.fromkeys(" ".join(one.split()) for p in pages for one in pattern.findall(p)))


COMMANDS = [one for one in found(_CODE) if not one.startswith(NEEDS_A_NODE)]


@pytest.fixture
def run(ns: WorkerNamespace) -> Callable[[str], str]:
    """Run a command of a page as its reader would, with their own names in it."""
    programs = [str(Path(sys.executable).parent), str(resolve("kubectl").path.parent)]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([*programs, os.environ["PATH"]]),
        "KUBECONFIG": str(ns.plane.kubeconfig),
    }

    def as_reader(command: str, name: str = "dead") -> str:
        own = {"NS": ns.namespace, "NAME": name, "ARRAY": name, "Q": "default"}
        text = re.sub(r"\b(NS|NAME|ARRAY|Q)\b", lambda word: own[word[0]], command)
        done = subprocess.run(
            text, shell=True, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{text}: {done.stdout}{done.stderr}"
        return done.stdout

    return as_reader


@pytest.fixture
def operator(replicas: Replicas) -> OperatorProcess:
    return replicas.start().until_leading()


def fail_an_array(ns: WorkerNamespace, name: str) -> None:
    """Create one whose payload is too large."""
    body = array(name, type="thumb", items={"count": 1}, payload="x" * 70_000)
    ns.api.create(collection_path(ns.namespace, ARRAYS), body)
    path = array_path(ns.namespace, name)
    until(lambda: ns.api.get(path)["status"]["phase"] == "Failed", 20, str(ns.api.get(path)))


def give_up(ns: WorkerNamespace, name: str) -> None:
    ns.create(name, "doomed")
    ns.until_phase(name, "DeadLetter")


@pytest.mark.soak
def test_each_command_runs(
    ns: WorkerNamespace, operator: OperatorProcess, run: Callable[..., str]
) -> None:
    assert len(COMMANDS) >= 14
    ns.worker("w", app="support.apps.monitored:app")
    ns.queue("default")
    fail_an_array(ns, "failed")
    for number, command in enumerate(COMMANDS):
        name = f"dead-{number}"
        if "NAME" in command:
            give_up(ns, name)
        if "ARRAY" in command:
            fail_an_array(ns, name)
        said = run(command, name)
        assert EXPECTED.get(command.partition(" --")[0], "") in said, command
        if "cancel" in command or "dismiss NAME" in command:
            ns.until_phase(name, "Cancelled")
        if "redrive" in command and "NAME" in command:
            ns.until_status(name, lambda status: status.get("redrives") == 1)
    assert operator.metric("asyncjob_jobs_redriven_total") >= 2


EXPECTED = {
    "kubectl describe asyncjob NAME": "NotRetryable",
    "kubectl get asyncarray ARRAY": "reason: PayloadTooLarge",
    "kubectl describe asyncarray ARRAY": "PayloadTooLarge",
    "asyncjob array list": "Failed",
    "kubectl get asyncjob NAME": "reason: NotRetryable",
    "asyncjob workers": "doomed",
    "kubectl get lease": "doomed",
    "kubectl get lease asyncjob-operator": "holderIdentity",
}


def test_each_query_of_a_runbook_is_one_that_prometheus_takes(tmp_path: Path) -> None:
    queries = found(_QUERY)
    assert len(queries) >= 10
    assert {query: query_problems(query) for query in queries if query_problems(query)} == {}
    rules = [{"record": f"one:{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "runbooks", "rules": rules}]}))
    done = subprocess.run(
        [resolve("promtool").path, "check", "rules", file],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
