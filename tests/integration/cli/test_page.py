"""Every command of the page on the command line, one after the other, as a reader would."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from asyncjob.cli.entry import run
from asyncjob.names import CRON_JOBS, collection_path
from support.docs.console import commands
from support.processes.workers import ROOT, WorkerNamespace

pytestmark = pytest.mark.integration

PAGE = ROOT / "docs" / "how-to" / "use-the-command-line.md"
README = ROOT / "README.md"
SHELL = set("|>&$")
ENDLESS = "asyncjob watch"

SAID = {
    "asyncjob submit flaky.call failures:=0 --name first": "first created",
    "asyncjob submit flaky.call -f payloads.jsonl --priority 5": "created",
    "asyncjob get first": "asyncjob",
    "asyncjob history first": "Succeeded",
    'asyncjob wait first hopeless --timeout 30s || echo "it ended with $?"': "it ended with 4",
    "asyncjob array submit order.check -f orders.jsonl --name lenient --max-failed 50% --wait": (
        "Succeeded"
    ),
    'asyncjob array submit order.check -f orders.jsonl --name orders --wait || echo "it ended with '
    '$?"': "it ended with 4",
    "asyncjob array items orders --failed": "date",
    "asyncjob cancel endless --wait": "Cancelled",
    "asyncjob rerun first --wait": "first-r1",
    "asyncjob redrive --type always.fails --dry-run": "hopeless",
    "asyncjob doctor": "Enforcement",
    "asyncjob cron trigger nightly --wait": "nightly-t1",
}
"""What some of them print, on top of exit code 0."""


@pytest.mark.timeout(180)  # some fifty commands, a dozen of which wait for a worker
def test_the_page_works_from_beginning_to_end(
    ns: WorkerNamespace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    programs = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([programs, os.environ["PATH"]]))
    _schedule(ns)
    there = list(commands(PAGE))
    for command in there:
        code = _run(command)
        said, complaint = capfd.readouterr()
        assert code == 0, f"{command}: {said}{complaint}"
        assert SAID.get(command, "") in said, f"{command}: {said}{complaint}"
    assert set(SAID) <= set(there)


def test_the_commands_of_the_readme_work(
    ns: WorkerNamespace, capfd: pytest.CaptureFixture[str]
) -> None:
    ns.create("report-42", "report.csv", {"source": "gone.csv", "target": "t"})
    # Those of the development server are run by its own tests.
    started = [one for one in commands(README) if one.startswith("asyncjob ")]
    there = [one for one in started if not one.startswith("asyncjob dev ")]
    for command in there:
        code = _run(command)
        said, complaint = capfd.readouterr()
        assert code == 0, f"{command}: {said}{complaint}"
    assert [command.split()[1] for command in there] == ["submit", "get", "doctor"]


def _run(command: str) -> int:
    """Run a command; in this process where it needs no shell, because starting takes time."""
    if command.startswith(ENDLESS):
        return _interrupted(command)
    if command.startswith("asyncjob ") and not SHELL & set(command):
        return run(shlex.split(command, comments=True)[1:], "asyncjob")
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], check=False).returncode


def _interrupted(command: str) -> int:
    """Run until it has said something, then press Ctrl-C; that it ends so is fine."""
    with subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
            return 0 if process.wait() == 130 else 1
        finally:
            process.kill()


def _schedule(ns: WorkerNamespace) -> None:
    template = {"spec": {"type": "flaky.call", "payload": {"failures": 0}}}
    body = {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncCronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "30 2 * * *", "jobTemplate": template},
    }
    ns.api.create(collection_path(ns.namespace, CRON_JOBS), body)
