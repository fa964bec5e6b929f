"""What `--all-namespaces` shows, and where it cannot be had."""

import json

import pytest

from support.objects.exports import an_object
from support.parts.cli_shell import Shell

LISTS = ("list", "watch", "queue list", "queue top", "cron list", "array list", "workers")


def crowded(shell: Shell) -> Shell:
    """Put jobs of one name into two namespaces."""
    made = {"uid": "1", "creationTimestamp": "2026-11-21T20:00:00Z", "resourceVersion": "1"}
    later = {**made, "uid": "2", "creationTimestamp": "2026-11-21T20:01:00Z"}
    spec = {"type": "report.csv"}
    shell.cluster.store(
        an_object("AsyncJob", "report", spec, namespace="team-a", **made),
        an_object("AsyncJob", "report", spec, namespace="team-b", **later),
    )
    return shell


def test_jobs_of_all_namespaces_come_newest_first_with_where_they_are(shell: Shell) -> None:
    head, *rows = crowded(shell).ok("list", "-A").splitlines()
    assert head.split()[:3] == ["NAMESPACE", "NAME", "PHASE"]
    assert [row.split()[:2] for row in rows] == [["team-b", "report"], ["team-a", "report"]]
    assert {call.path for call in shell.cluster.calls} == {"/apis/asyncjob.dev/v1alpha1/asyncjobs"}


def test_programs_are_told_the_namespace_and_names_stay_names(shell: Shell) -> None:
    found = json.loads(crowded(shell).ok("list", "--all-namespaces", "-o", "json"))["items"]
    assert [one["namespace"] for one in found] == ["team-b", "team-a"]
    assert shell.ok("list", "-A", "-o", "name") == "report\nreport\n"


@pytest.mark.parametrize("command", LISTS)
def test_through_a_gateway_it_is_refused_with_the_way_out(shell: Shell, command: str) -> None:
    result = shell("--server=http://gateway", *command.split(), "-A")
    assert result.exit_code == 2
    assert "one namespace at a time" in result.stderr
    assert "--server ''" in result.stderr
    assert shell.places == []


@pytest.mark.parametrize("command", LISTS)
def test_one_namespace_and_all_of_them_contradict_each_other(shell: Shell, command: str) -> None:
    result = shell("-n", "team-a", *command.split(), "-A")
    assert result.exit_code == 2
    assert "not both" in result.stderr


def test_without_it_nothing_changes(shell: Shell) -> None:
    shell.jobs.add()
    assert shell("list").exit_code == 0
    assert shell.cluster.calls == []
