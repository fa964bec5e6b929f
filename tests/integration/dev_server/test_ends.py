"""How `asyncjob dev` ends, and what the next one finds."""

import signal

import pytest

from integration.dev_server.project import WITHIN, Project
from support.jobs import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def test_one_that_is_interrupted_while_it_starts_leaves_nothing(project: Project) -> None:
    with project.server("hello:app", until_said="starting etcd") as server:
        until(lambda: any("kube-apiserver" in one for one in running(project)), WITHIN, "a start")
        assert server.end(signal.SIGINT) == 130
        assert server.said.endswith("interrupted; nothing that it started is left running\n")
    assert running(project) == []


def test_a_killed_one_leaves_no_process_and_the_next_goes_on_with_its_jobs(
    project: Project,
) -> None:
    with project.server("hello:app", "--workers=2") as first:
        project.submit("count", "steps", "to:=40", "pause:=0.2")
        until(lambda: has_begun(project), WITHIN, "a checkpoint")
        assert first.end(signal.SIGKILL) == -signal.SIGKILL
    project.commands.await_none_running()
    with project.server("hello:app") as second:
        since, to, attempt = project.result("steps")
        assert since > 0
        assert (to, attempt) == (40, 2)
        assert second.end(signal.SIGINT) == 0
        assert second.said.endswith("stopped; jobs are kept in .asyncjob\n")
    assert running(project) == []
    assert list(project.commands.temporary.iterdir()) == []


def has_begun(project: Project) -> bool:
    return "checkpoint" in project.asyncjob("get", "steps", "--output=json")


def running(project: Project) -> list[str]:
    return project.commands.running()
