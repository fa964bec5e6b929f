"""What is read off a worker's pod."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob_operator.core.liveness import (
    ContainerTermination,
    is_same_termination,
    read_pod,
    status_written,
)
from support.objects.snapshots import EPOCH, stamp


def pod(status: dict[str, Any], **meta: Any) -> Any:
    return {"metadata": {"namespace": "ns", "name": "p", "uid": "u", **meta}, "status": status}


def ended(name: str, code: int, at: float, where: str = "state") -> dict[str, Any]:
    terminated = {"exitCode": code, "reason": "Error", "finishedAt": stamp(at)[:19] + "Z"}
    return {"name": name, where: {"terminated": terminated}}


def test_a_running_pod_has_no_ending() -> None:
    container = {"name": "worker", "state": {"running": {}}}
    view = read_pod(pod({"phase": "Running", "containerStatuses": [container]}))
    assert (view.terminated, view.disrupted, view.deleting, view.termination) == (
        False,
        False,
        False,
        None,
    )


def test_the_end_of_a_sidecar_is_not_the_workers() -> None:
    statuses = [ended("proxy", 1, 5), {"name": "worker", "state": {"running": {}}}]
    assert read_pod(pod({"phase": "Running", "containerStatuses": statuses})).termination is None


def test_of_several_unnamed_containers_none_is_taken_for_the_worker() -> None:
    statuses = [ended("a", 1, 5), ended("b", 1, 5)]
    assert read_pod(pod({"phase": "Running", "containerStatuses": statuses})).termination is None


def test_the_default_container_is_the_worker_whatever_its_name() -> None:
    statuses = [ended("a", 1, 5), ended("b", 7, 5)]
    annotations = {"kubectl.kubernetes.io/default-container": "b"}
    view = read_pod(pod({"containerStatuses": statuses}, annotations=annotations))
    assert view.termination
    assert view.termination.exit_code == 7


def test_a_single_container_is_the_worker_whatever_its_name() -> None:
    view = read_pod(pod({"phase": "Running", "containerStatuses": [ended("mine", 7, 5)]}))
    assert view.termination
    assert view.termination.exit_code == 7


def test_the_newest_of_two_endings_counts() -> None:
    last = ended("worker", 1, 5, "lastState") | ended("worker", 2, 9)
    ending = read_pod(pod({"containerStatuses": [last]})).termination
    assert ending == ContainerTermination(EPOCH + 9, 2, "Error", restarted=False)


def test_a_container_started_again_has_ended_before() -> None:
    again = ended("worker", 1, 5, "lastState") | {"state": {"running": {}}}
    ending = read_pod(pod({"containerStatuses": [again]})).termination
    assert ending
    assert ending.restarted


def test_a_pod_failed_by_its_kubelet_is_over() -> None:
    assert read_pod(pod({"phase": "Failed", "reason": "Evicted"})).terminated
    assert read_pod(pod({"phase": "Failed", "reason": "Evicted"})).disrupted


def test_a_pod_merely_presumed_failed_is_not_over() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
    view = read_pod(pod({"phase": "Failed", "conditions": [condition]}))
    assert (view.terminated, view.disrupted) == (False, True)


def ready(status: str, containers: str, reason: str | None = None) -> Any:
    conditions = [
        {"type": "Ready", "status": status} | ({"reason": reason} if reason else {}),
        {"type": "ContainersReady", "status": containers},
    ]
    return read_pod(pod({"phase": "Running", "conditions": conditions}))


def test_a_pod_whose_node_does_not_report_any_more_is_disrupted() -> None:
    """The node lifecycle controller sets Ready to False, without a reason, and nothing else."""
    assert ready("False", "True").disrupted
    assert not ready("True", "True").disrupted


def test_a_pod_that_its_kubelet_calls_unready_is_not_disrupted() -> None:
    assert not ready("False", "False", "ContainersNotReady").disrupted
    assert not ready("False", "True", "ReadinessGatesNotReady").disrupted


def test_an_ending_whose_time_cannot_be_read_was_long_ago() -> None:
    last: Any = ended("worker", 1, 5)
    last["state"]["terminated"]["finishedAt"] = "yesterday"
    ending = read_pod(pod({"containerStatuses": [last]})).termination
    assert ending
    assert ending.finished_at == 0.0


def disrupted(**condition: str) -> bool:
    full = {"type": "DisruptionTarget", "status": "True", **condition}
    return read_pod(pod({"phase": "Running", "conditions": [full]})).disrupted


def test_a_pod_is_disrupted_while_that_condition_holds() -> None:
    assert disrupted()
    assert disrupted(reason="EvictionByEvictionAPI")
    assert not disrupted(status="False")
    assert not disrupted(type="Ready")


@pytest.mark.parametrize(
    ("phase", "reason", "terminated", "is_disrupted"),
    [
        ("Running", "", False, False),
        ("Pending", "", False, False),
        ("Succeeded", "", True, False),
        ("Failed", "Error", True, False),
        ("Failed", "Evicted", True, True),
        ("Failed", "Preempting", True, True),
        ("Failed", "NodeLost", True, True),
        ("Failed", "Shutdown", True, True),
        ("Failed", "Terminated", True, True),
        ("Running", "NodeLost", False, True),
    ],
)
def test_phase_and_reason_say_whether_a_pod_has_ended_and_whether_by_disruption(
    phase: str, reason: str, terminated: bool, is_disrupted: bool
) -> None:
    view = read_pod(pod({"phase": phase, "reason": reason}))
    assert (view.terminated, view.disrupted) == (terminated, is_disrupted)


def test_among_several_containers_the_one_named_worker_counts() -> None:
    view = read_pod(pod({"containerStatuses": [ended("proxy", 1, 9), ended("worker", 7, 5)]}))
    assert view.termination
    assert view.termination.exit_code == 7


def test_a_pods_status_was_written_when_its_last_writer_says() -> None:
    entries = [
        {"subresource": "status", "time": "1970-01-01T00:00:09Z"},
        {"subresource": "status", "time": "1970-01-01T00:00:05Z"},
        {"subresource": "", "time": "1970-01-01T00:01:00Z"},
        {"subresource": "status", "time": "later"},
    ]
    assert status_written(pod({}, managedFields=entries)) == 9.0
    assert status_written(pod({}, managedFields=entries[3:])) == 0.0
    assert status_written(pod({}, managedFields=entries[2:3])) is None


def test_an_ending_is_the_same_though_the_container_runs_again() -> None:
    one = ContainerTermination(5.0, 1, "Error", restarted=False)
    assert is_same_termination(one, replace(one, restarted=True))
    assert not is_same_termination(one, replace(one, restarted=True, finished_at=6.0))
    assert not is_same_termination(one, replace(one, exit_code=2))
