"""From `helm install` to jobs that have succeeded, without a step in between."""

from typing import Any

import pytest

from e2e.cluster import until
from e2e.release import NAMESPACE, RELEASE, Release, container_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300, func_only=True)]

FIRST_SECONDS = 90.0
COLUMNS = ["NAME", "PHASE", "TYPE", "QUEUE", "ATTEMPT", "PROGRESS", "AGE"]


def test_the_first_job_succeeds_soon_after_helm_install_began(
    release: Release, record_property: Any
) -> None:
    record_property("first_success_seconds", release.first_success_seconds)
    print(f"first success after {release.first_success_seconds:.0f} s")  # noqa: T201
    assert release.first_success_seconds < FIRST_SECONDS
    first = release.cluster.get(NAMESPACE, "asyncjob", "first")["status"]
    assert (first["result"], first["attempt"]) == ({"hello": "world"}, 1)


def test_all_parts_are_there_and_nothing_has_been_restarted(whole: Release) -> None:
    parts = {"operator": 2, "gateway": 2, "worker-default": 3, "worker-reports": 1}
    assert {part: len(whole.pods(part)) for part in parts} == parts
    for part in parts:
        for pod in whole.pods(part):
            assert container_of(pod, part.partition("-")[0])["restartCount"] == 0


def test_what_was_applied_is_done_and_seen_with_kubectl(release: Release) -> None:
    until(lambda: release.phase("second") == "Succeeded", 30.0, release.describe)
    table = release.cluster.kubectl("get", "asyncjobs", f"--namespace={NAMESPACE}")
    header, *rows = [line.split() for line in table.splitlines()]
    assert header == COLUMNS
    shown = {row[0]: row[1:6] for row in rows}
    assert shown["first"][:4] == ["Succeeded", "echo", "default", "1"]
    assert shown["second"] == ["Succeeded", "sleep", "reports", "1", "100"]
    queue = release.cluster.get(NAMESPACE, "asyncqueue", "reports")
    assert queue["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    waited = release.cluster.kubectl(
        "wait", "--for=condition=Complete", "asyncjob/first", f"--namespace={NAMESPACE}"
    )
    assert "condition met" in waited


def test_helm_test_sees_a_job_run(whole: Release) -> None:
    assert "Phase:          Succeeded" in whole.helm("test", RELEASE)
