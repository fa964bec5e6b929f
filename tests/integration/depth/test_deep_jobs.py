"""A job nested as deeply as the API server takes it harms nobody but itself."""

from pathlib import Path

import pytest

from asyncjob.deep_json import TRUNCATED_TEXT
from asyncjob_dev.controlplane import ControlPlane
from support.gateway import GatewayProcess
from support.jobs import until
from support.replicas import Replicas
from support.workers import Field

pytestmark = [pytest.mark.integration, pytest.mark.timeout(150)]

READ, UNREAD = 900, (1100, 9000)
"""Levels that our parser reads, though a handler cannot give them back, and that it does not."""

HEAD = '{"apiVersion": "asyncjob.dev/v1alpha1", "kind": '


def nest(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def create(plane: ControlPlane, field: Field, folder: Path, text: str) -> None:
    file = folder / "deep.json"
    file.write_text(HEAD + text, encoding="utf-8")
    plane.kubectl("create", f"--namespace={field.namespace}", f"--filename={file}")


def create_deep(plane: ControlPlane, field: Field, folder: Path, levels: int) -> None:
    job = f'"metadata": {{"name": "deep-{levels}"}}'
    spec = f'"spec": {{"type": "echo", "payload": {nest(levels)}}}'
    create(plane, field, folder, f'"AsyncJob", {job}, {spec}}}')


def create_schedule(plane: ControlPlane, field: Field, folder: Path, name: str, spec: str) -> None:
    create(plane, field, folder, f'"AsyncCronJob", "metadata": {{"name": "{name}"}}, {spec}}}')


def told(plane: ControlPlane, field: Field, levels: int, path: str) -> str:
    """Return a field of a job that Python's own parser would not read either."""
    place = (f"--namespace={field.namespace}", f"--output=jsonpath={{{path}}}")
    return plane.kubectl("get", "asyncjob", f"deep-{levels}", *place).stdout


def until_dead(plane: ControlPlane, field: Field, levels: int) -> None:
    until(lambda: told(plane, field, levels, ".status.phase") == "DeadLetter", 20)


def test_deep_jobs_stop_neither_those_who_list_and_watch_nor_their_neighbours(
    control_plane: ControlPlane,
    replicas: Replicas,
    field: Field,
    gateway: GatewayProcess,
    tmp_path: Path,
) -> None:
    create_deep(control_plane, field, tmp_path, UNREAD[0])
    operator = replicas.start().until_leading()
    field.worker("w", "--concurrency=4")
    for levels in (READ, UNREAD[1]):
        create_deep(control_plane, field, tmp_path, levels)
    field.create("neighbour", "echo", "fine", retryPolicy={"initialDelaySeconds": 0})
    field.until_phase("neighbour", "Succeeded")
    for levels in (READ, *UNREAD):
        until_dead(control_plane, field, levels)
    for levels in UNREAD:
        assert told(control_plane, field, levels, ".status.reason") == "InvalidPayload"
        assert "submit it flatter" in told(control_plane, field, levels, ".status.error.message")
    until(lambda: operator.metric("asyncjob_jobs") == 4, 10)
    assert "failed" not in operator.logs()
    assert "watch broke off" not in operator.logs()
    with gateway.client() as http:
        listed = http.get("/api/v1/jobs").json()["items"]
        assert len(listed) == 4
        for levels in (READ, *UNREAD):
            answer = http.get(f"/api/v1/jobs/deep-{levels}")
            assert answer.status_code == 200
            assert TRUNCATED_TEXT in answer.text
            assert http.get(f"/dashboard/jobs/deep-{levels}").status_code == 200


def test_a_deep_schedule_does_not_keep_others_from_being_seen(
    control_plane: ControlPlane, replicas: Replicas, field: Field, tmp_path: Path
) -> None:
    replicas.start().until_leading()
    template = f'"jobTemplate": {{"spec": {{"type": "echo", "payload": {nest(UNREAD[0])}}}}}'
    spec = f'"spec": {{"schedule": "* * * * *", "suspend": true, {template}}}'
    create(
        control_plane, field, tmp_path, f'"AsyncCronJob", "metadata": {{"name": "deep"}}, {spec}}}'
    )
    other = '"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"type": "echo"}}}'
    create(
        control_plane,
        field,
        tmp_path,
        f'"AsyncCronJob", "metadata": {{"name": "other"}}, {other}}}',
    )
    next_run = ("--namespace=" + field.namespace, "--output=jsonpath={.status.nextScheduleTime}")
    until(lambda: control_plane.kubectl("get", "asynccronjob", "other", *next_run).stdout, 40)
