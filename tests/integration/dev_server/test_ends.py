"""How `asyncjob dev` ends, and what the next one finds."""

import json
import signal
from pathlib import Path

import pytest

from integration.dev_server.project import WITHIN, Project
from support.driven.jobs import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def test_one_that_is_interrupted_while_it_starts_leaves_nothing(project: Project) -> None:
    with project.server("hello:app", until_said="starting etcd") as server:
        until(lambda: any("kube-apiserver" in one for one in running(project)), WITHIN, "a start")
        assert server.end(signal.SIGINT) == 130
        assert server.said.endswith("interrupted; nothing that it started is left running\n")
    assert running(project) == []


def test_a_killed_one_leaves_no_process_and_the_next_goes_on_with_its_jobs(
    project: Project, tmp_path: Path
) -> None:
    may_end = tmp_path / "may-end"
    with project.server("hello:app", "--workers=2") as first:
        project.submit("hold", "held", f"until={may_end}")
        until(lambda: has_begun(project), WITHIN, "a checkpoint")
        assert first.end(signal.SIGKILL) == -signal.SIGKILL
    project.commands.await_none_running()
    with project.server("hello:app") as second:
        may_end.touch()
        assert project.result("held") == ["kept", 2]
        # Its lease need not expire: the next server says that the worker has ended.
        assert "WorkerCrashed" in project.asyncjob("history", "held")
        assert second.end(signal.SIGINT) == 0
        assert second.said.endswith("stopped; jobs are kept in .asyncjob\n")
    assert running(project) == []
    assert list(project.commands.temporary.iterdir()) == []


def has_begun(project: Project) -> bool:
    job = json.loads(project.asyncjob("get", "held", "--output=json"))
    return bool(job.get("checkpoint") == "kept")


def running(project: Project) -> list[str]:
    return project.commands.running()
