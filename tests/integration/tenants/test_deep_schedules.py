"""A cron job or a queue nested as deeply as the API server takes it harms nobody but itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asyncjob.names import CRON_JOBS, QUEUES, collection_path
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import MERGE, Client
from support.cluster.identities import Space
from support.driven.jobs import Jobs, until
from support.objects import builders
from support.processes.operator import QUICK, OperatorProcess
from support.tenants.dishonest import ResourceField, Value
from support.tenants.honest import WITHIN, HonestSchedule, broken_loops, harm

pytestmark = [pytest.mark.integration, pytest.mark.alone, pytest.mark.timeout(180)]

LEVELS = (300, 1100)
"""More than orjson writes and kopf copies, and more than either of their parsers reads."""

ROUNDS = 8
SHALLOW = "application/json;as=Table;v=v1;g=meta.k8s.io"
BARE = {"includeObject": "None"}


@pytest.fixture
def unaided(operator_access: Path, tmp_path: Path) -> Iterator[OperatorProcess]:
    """Run an operator that sees by its watches alone: it compares too seldom to help them."""
    options = (*QUICK, "--resync-interval=300")
    with OperatorProcess(operator_access, tmp_path / "unaided.log", *options) as running:
        yield running.until_ready(60).until_leading()


@pytest.fixture
def thief(space: Space) -> Client:
    """Return the other tenant's administrator of jobs."""
    space.account("thief")
    space.bind("thief", "asyncjob-job-admin")
    return space.as_account("thief")


@pytest.fixture(params=LEVELS)
def deep(request: pytest.FixtureRequest) -> Value:
    """Return a value of so many levels."""
    levels: int = request.param
    return Value("deep", '{"f:a":' * levels + "{}" + "}" * levels)


def send(client: Client, method: str, path: str, text: str) -> None:
    """Send a body; Python's own parser would not read the whole answer."""
    kind = MERGE if method == "PATCH" else "application/json"
    answer = client.send(method, path, text.encode(), content_type=kind, accept=SHALLOW, query=BARE)
    assert answer.accepted, answer.message


def create_deep_schedule(client: Client, namespace: str, deep: Value, **spec: Any) -> None:
    body = builders.cron_job("deep")
    body["spec"] |= {"suspend": True, "trigger": 1, **spec}
    text = ResourceField(("spec", "jobTemplate", "spec", "payload")).put(body, deep)
    send(client, "POST", collection_path(namespace, CRON_JOBS), text)


def test_a_deep_schedule_makes_no_other_wait_and_says_why_it_does_not_run(
    control_plane: ControlPlane,
    unaided: OperatorProcess,
    space: Space,
    thief: Client,
    deep: Value,
) -> None:
    honest = HonestSchedule(Jobs(control_plane.api))
    alone = honest.some(ROUNDS)
    create_deep_schedule(thief, space.name, deep)
    beside = honest.some(ROUNDS)
    assert not (told_of := harm(alone, beside, alone)), told_of
    jobs = Jobs(control_plane.api, space.name)
    told = until(lambda: jobs.events("deep"), 20, "an Event")
    assert [event["reason"] for event in told] == ["JobRefused"]
    assert "nested too deeply" in told[0]["message"]
    unaided.until_ready(1.0)
    assert not broken_loops(unaided)
    assert "Traceback" not in unaided.logs()


def test_an_operator_starts_beside_a_deep_schedule(
    control_plane: ControlPlane,
    unaided: OperatorProcess,
    space: Space,
    thief: Client,
    deep: Value,
) -> None:
    create_deep_schedule(thief, space.name, deep)
    honest = HonestSchedule(Jobs(control_plane.api))
    unaided.stop()
    with unaided:
        unaided.until_ready(60).until_leading()
        assert max(honest.some(ROUNDS)) <= WITHIN
        assert not broken_loops(unaided)


def test_a_queue_whose_managed_fields_are_deep_keeps_no_other_from_being_seen(
    control_plane: ControlPlane,
    unaided: OperatorProcess,
    space: Space,
    thief: Client,
    deep: Value,
) -> None:
    path = collection_path(space.name, QUEUES)
    thief.create(path, builders.queue("deep")).object()
    owner = {
        "manager": "other",
        "operation": "Apply",
        "apiVersion": "asyncjob.dev/v1alpha1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {}},
    }
    fields = ResourceField(("metadata", "managedFields", 0, "fieldsV1", "f:spec"))
    body = {"metadata": {"managedFields": [owner]}}
    send(thief, "PATCH", f"{path}/deep", fields.put(body, deep))
    jobs = Jobs(control_plane.api)
    for number in range(ROUNDS):
        name = f"limited-{number}"
        jobs.queue(name, maxConcurrency=1)
        jobs.create(name, queue=name)
        until(lambda name=name: jobs.status(name).get("admitted"), WITHIN, f"{name} admitted")  # type: ignore[misc]
    assert not broken_loops(unaided)
    assert "Traceback" not in unaided.logs()
