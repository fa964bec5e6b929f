"""A job nested as deeply as the API server takes it harms nobody but itself."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from asyncjob.deep_json import TRUNCATED_TEXT
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.names import cron_job_path
from asyncjob_dev.controlplane import ControlPlane
from support.driven.jobs import until
from support.processes.gateway import GatewayProcess
from support.processes.operator import Replicas
from support.processes.workers import WorkerNamespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(150)]

READ, UNREAD = (210, 300, 900), (1100, 9000)
"""Levels that our parser reads, though no handler may give them back, and that it does not."""

UNWRITTEN = 300
"""Levels that are read, and cannot be written again."""

HEAD = '{"apiVersion": "asyncjob.dev/v1alpha1", "kind": '


def nest(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def create(plane: ControlPlane, ns: WorkerNamespace, folder: Path, text: str) -> None:
    file = folder / "deep.json"
    file.write_text(HEAD + text, encoding="utf-8")
    plane.kubectl("create", f"--namespace={ns.namespace}", f"--filename={file}")


def create_deep(plane: ControlPlane, ns: WorkerNamespace, folder: Path, levels: int) -> None:
    job = f'"metadata": {{"name": "deep-{levels}"}}'
    spec = f'"spec": {{"type": "echo", "payload": {nest(levels)}}}'
    create(plane, ns, folder, f'"AsyncJob", {job}, {spec}}}')


def told(plane: ControlPlane, ns: WorkerNamespace, levels: int, path: str) -> str:
    """Return a field of a job that Python's own parser would not read either."""
    place = (f"--namespace={ns.namespace}", f"--output=jsonpath={{{path}}}")
    return plane.kubectl("get", "asyncjob", f"deep-{levels}", *place).stdout


def until_dead(plane: ControlPlane, ns: WorkerNamespace, levels: int) -> None:
    until(lambda: told(plane, ns, levels, ".status.phase") == "DeadLetter", 20)


def test_deep_jobs_stop_neither_those_who_list_and_watch_nor_their_neighbours(
    control_plane: ControlPlane,
    replicas: Replicas,
    ns: WorkerNamespace,
    gateway: GatewayProcess,
    tmp_path: Path,
) -> None:
    create_deep(control_plane, ns, tmp_path, UNREAD[0])
    operator = replicas.start().until_leading()
    ns.worker("w", "--concurrency=4")
    for levels in (*READ, UNREAD[1]):
        create_deep(control_plane, ns, tmp_path, levels)
    ns.create("neighbour", "echo", "fine", retryPolicy={"initialDelaySeconds": 0})
    ns.until_phase("neighbour", "Succeeded")
    for levels in (*READ, *UNREAD):
        until_dead(control_plane, ns, levels)
    for levels in READ:
        assert told(control_plane, ns, levels, ".status.reason") == "ResultRefused"
        assert told(control_plane, ns, levels, ".status.attempt") == "1"
    for levels in UNREAD:
        assert told(control_plane, ns, levels, ".status.reason") == "InvalidPayload"
        assert "submit it flatter" in told(control_plane, ns, levels, ".status.error.message")
    until(lambda: operator.metric("asyncjob_jobs") == 6, 10)
    assert "failed" not in operator.logs()
    assert "watch broke off" not in operator.logs()
    with gateway.client() as http:
        listed = http.get("/api/v1/jobs").json()["items"]
        assert len(listed) == 6
        for levels in (*READ, *UNREAD):
            answer = http.get(f"/api/v1/jobs/deep-{levels}")
            assert answer.status_code == 200
            assert TRUNCATED_TEXT in answer.text
            assert http.get(f"/dashboard/jobs/deep-{levels}").status_code == 200


def events(ns: WorkerNamespace, name: str) -> dict[str, str]:
    """Return the messages of the Events about an object, by reason."""
    found = ns.api.get(
        f"/api/v1/namespaces/{ns.namespace}/events",
        fieldSelector=f"involvedObject.name={name}",
    )
    return {one["reason"]: one["message"] for one in found["items"]}


def test_a_rerun_that_cannot_be_written_is_refused_with_an_event_and_the_job_goes_on(
    control_plane: ControlPlane, replicas: Replicas, ns: WorkerNamespace, tmp_path: Path
) -> None:
    operator = replicas.start().until_leading()
    start = datetime.now(UTC) + timedelta(seconds=10)
    not_before = f'"notBefore": "{format_timestamp(start)}"'
    spec = f'"spec": {{"type": "echo", "payload": {nest(UNWRITTEN)}, {not_before}}}'
    create(control_plane, ns, tmp_path, f'"AsyncJob", "metadata": {{"name": "deep"}}, {spec}}}')
    ns.patch("deep", {"spec": {"rerun": 1}})

    refused = until(lambda: events(ns, "deep").get("RerunRefused"), 5)
    assert refused.startswith("not rerun: spec.payload is nested too deeply to be written")
    assert datetime.now(UTC) < start, "the promotion has yet to come"
    until(lambda: ns.status("deep")["phase"] == "Queued", 20)
    assert datetime.now(UTC) - start < timedelta(seconds=5)
    ns.cancel("deep")
    until(lambda: ns.status("deep")["phase"] == "Cancelled", 5)
    assert "object quarantined" not in operator.logs()
    assert [job["metadata"]["name"] for job in ns.jobs()] == ["deep"]


def test_a_schedule_whose_runs_cannot_be_written_says_why(
    control_plane: ControlPlane, replicas: Replicas, ns: WorkerNamespace, tmp_path: Path
) -> None:
    operator = replicas.start().until_leading()
    template = f'"jobTemplate": {{"spec": {{"type": "echo", "payload": {nest(UNWRITTEN)}}}}}'
    spec = f'"spec": {{"schedule": "@yearly", "trigger": 1, {template}}}'
    create(control_plane, ns, tmp_path, f'"AsyncCronJob", "metadata": {{"name": "deep"}}, {spec}}}')

    def status() -> dict[str, str]:
        path = cron_job_path(ns.namespace, "deep")
        found: dict[str, str] = ns.api.get(path).get("status", {})
        return found

    told = until(lambda: status() if status().get("reason") == "JobRefused" else None, 15)
    assert "spec.payload is nested too deeply to be written" in told["message"]
    until(lambda: "JobRefused" in events(ns, "deep"), 5)
    assert "reserved" not in status()
    assert "object quarantined" not in operator.logs()
    assert ns.jobs() == []
