"""The CRDs on a real API server: what kubectl shows and what is refused."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from asyncjob import columns
from asyncjob.lifecycle.policy import PolicyLayer, read_policy_layer
from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.names import CRON_JOBS, JOBS, QUEUES, collection_path, job_status_path
from asyncjob.rules.policies import POLICIES
from asyncjob.rules.policy import AdmissionPolicy
from asyncjob.schema.crd import CUSTOM_RESOURCES
from asyncjob_dev.controlplane import ControlPlane
from support.cluster.api import Client
from support.cluster.enforcement import until
from support.cluster.identities import Space
from support.objects.builders import at, cron_job, job, queue

pytestmark = pytest.mark.integration

CRDS = Path(__file__).parents[3] / "crds"
UNREADABLE = (
    "2026-11-21t15:00:00z",
    "2026-11-21T15:00:00z",
    "2026-11-21 15:00:00Z",
    "2026-11-21T15:00:00",
    "2026-11-21T15:00:60Z",
    "2026-11-21T24:00:00Z",
    "2026-02-30T15:00:00Z",
    "2026-11-21T15:00:00x5Z",
    "2026-11-21T15:00:00+0530",
    "2026-11-21T15:00:00+24:00",
    "0000-11-21T15:00:00Z",
)
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


@pytest.fixture
def kubectl(control_plane: ControlPlane, namespace: str) -> Callable[..., str]:
    """Run kubectl in the test's namespace and return what it prints."""

    def run(*arguments: str, **options: Any) -> str:
        done = control_plane.kubectl(*arguments, f"--namespace={namespace}", **options)
        return done.stdout + done.stderr

    return run


def rows(client: Client, namespace: str) -> dict[str, dict[str, Any]]:
    """Return the cells of each job by the column's name."""
    path = collection_path(namespace, JOBS) + "?includeObject=None"
    table = client.request("GET", path, accept=TABLE).object()
    names = [column["name"] for column in table["columnDefinitions"]]
    cells = [dict(zip(names, row["cells"], strict=True)) for row in table["rows"]]
    return {row[columns.NAME]: row for row in cells}


def test_everything_applies_again_without_a_change_or_a_warning(
    kubectl: Callable[..., str],
) -> None:
    printed = kubectl("apply", f"--filename={CRDS}").splitlines()
    assert len(printed) == len(CUSTOM_RESOURCES) + 2 * len(POLICIES)
    assert [line for line in printed if not line.endswith("unchanged")] == []


def test_the_server_accepts_each_manifest_strictly_and_without_warnings(
    kubectl: Callable[..., str],
) -> None:
    printed = kubectl(
        "apply",
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        "--force-conflicts",
        f"--filename={CRDS}",
    )
    assert "arning" not in printed


def test_policies_are_typed_correctly(admin: Client) -> None:
    """Copies made now: what was installed first may be checked before its schemas are known."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    names = [_copy(admin, path, policy) for policy in POLICIES]
    for name in names:
        checked = until(
            lambda answer: "typeChecking" in answer.body.get("status", {}),
            partial(admin.get, f"{path}/{name}"),
            "type checking",
        )
        assert checked.body["status"]["typeChecking"] == {}
        admin.delete(f"{path}/{name}").object()


def _copy(admin: Client, path: str, policy: AdmissionPolicy) -> str:
    manifest: dict[str, Any] = policy.manifests()[0]
    name = f"copy.{manifest['metadata']['name']}"
    admin.create(path, {**manifest, "metadata": {"name": name}}).object()
    return name


def test_explain_tells_what_a_field_means(kubectl: Callable[..., str]) -> None:
    printed = kubectl("explain", "asyncjob.spec.retryPolicy")
    assert "When and how often a failed attempt is retried." in printed
    assert "maxRetries\t<integer>" in printed
    assert "Exponential" in printed


def test_explain_tells_what_a_job_is(kubectl: Callable[..., str]) -> None:
    assert "A durable asynchronous job" in kubectl("explain", "aj")


def test_short_names_and_the_category_work(kubectl: Callable[..., str], space: Space) -> None:
    space.admin.create(collection_path(space.name, JOBS), job("one")).object()
    space.admin.create(collection_path(space.name, QUEUES), queue("default")).object()
    space.admin.create(collection_path(space.name, CRON_JOBS), cron_job("nightly")).object()
    assert "one" in kubectl("get", "aj")
    assert "default" in kubectl("get", "aq")
    assert "nightly" in kubectl("get", "acj")
    everything = kubectl("get", "async")
    assert all(name in everything for name in ("one", "default", "nightly"))


def test_a_job_is_queued_without_a_write_by_anyone(space: Space) -> None:
    created = space.admin.create(collection_path(space.name, JOBS), job()).object()
    assert created["status"] == {"phase": "Queued", "attempt": 0}
    assert created["spec"] == {"type": "test", "queue": "default", "priority": 0}
    assert len(created["metadata"]["managedFields"]) == 1


def test_a_status_is_owned_whole_so_that_its_history_does_not_grow_the_metadata(
    space: Space,
) -> None:
    space.admin.create(collection_path(space.name, JOBS), job("one")).object()
    told = {"status": {"message": "waits for its turn"}}
    written = space.admin.merge(job_status_path(space.name, "one"), told).object()
    owned = [one["fieldsV1"] for one in written["metadata"]["managedFields"]]
    assert {"f:status": {}} in owned
    assert sum("f:status" in fields for fields in owned) == 1


def test_a_status_cannot_be_brought_along_at_creation(space: Space) -> None:
    body = {**job(), "status": {"phase": "Succeeded", "attempt": 7}}
    created = space.admin.create(collection_path(space.name, JOBS), body).object()
    assert (created["status"]["phase"], created["status"]["attempt"]) == ("Queued", 0)


def test_get_shows_the_useful_columns_and_wide_all(
    kubectl: Callable[..., str], space: Space
) -> None:
    space.admin.create(collection_path(space.name, JOBS), job("one", priority=5)).object()
    narrow, wide = kubectl("get", "aj"), kubectl("get", "aj", "--output=wide")
    assert narrow.split()[:7] == ["NAME", "PHASE", "TYPE", "QUEUE", "ATTEMPT", "PROGRESS", "AGE"]
    assert "PRIORITY" not in narrow
    assert "PRIORITY" in wide


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("spec.queue=fast", {"fast"}),
        ("spec.type=print", {"printing"}),
        ("spec.cancel=true", {"unwanted"}),
        ("status.phase=Queued", {"fast", "printing", "unwanted"}),
        ("status.phase=Queued,spec.queue=default", {"printing", "unwanted"}),
        ("status.phase=Running", set()),
    ],
)
def test_field_selectors_find_jobs(space: Space, selector: str, found: set[str]) -> None:
    path = collection_path(space.name, JOBS)
    for body in (job("fast", queue="fast"), job("printing", type="print")):
        space.admin.create(path, body).object()
    space.admin.create(path, job("unwanted", cancel=True)).object()
    listed = space.admin.get(path, fieldSelector=selector).object()
    assert {one["metadata"]["name"] for one in listed["items"]} == found


def test_a_row_carries_what_choosing_and_claiming_need(space: Space) -> None:
    retry = {
        "maxRetries": 7,
        "backoff": "Fixed",
        "initialDelaySeconds": 0.5,
        "maxDelaySeconds": 50,
        "jitter": 0,
        "retryOn": ['odd "<&> name', "Timeout"],
        "noRetryOn": [],
        "maxCrashes": 9,
    }
    spec: Any = {"executionTimeoutSeconds": 5, "leaseDurationSeconds": 30, "retryPolicy": retry}
    body = job("one", priority=-3, suspend=False, cancel=True, **spec)
    space.admin.create(collection_path(space.name, JOBS), body).object()

    row = rows(space.admin, space.name)["one"]

    assert row[columns.TYPE] == "test"
    assert row[columns.PRIORITY] == -3
    assert (row[columns.ATTEMPT], row[columns.ADMITTED]) == (0, None)
    assert (row[columns.SUSPEND], row[columns.CANCEL]) == (False, True)
    read = {
        "executionTimeoutSeconds": row[columns.TIMEOUT],
        "leaseDurationSeconds": row[columns.LEASE],
        "retryPolicy": json.loads(row[columns.RETRY_POLICY]),
    }
    assert read_policy_layer(read) == read_policy_layer(spec)


def test_a_row_without_a_policy_of_its_own_is_empty_there(space: Space) -> None:
    space.admin.create(collection_path(space.name, JOBS), job("one")).object()
    row = rows(space.admin, space.name)["one"]
    unset = (columns.TIMEOUT, columns.LEASE, columns.RETRY_POLICY, columns.GATE)
    assert [row[name] for name in unset] == [None] * 4
    assert read_policy_layer({}) == PolicyLayer()


@pytest.mark.parametrize(
    ("spec", "gate"),
    [
        ({"notBefore": at()}, at()),
        ({"deduplicationId": "a"}, "a"),
        ({"dependsOn": [{"name": "a"}]}, '[{"name":"a","outcome":"Succeeded"}]'),
        ({"dependsOn": []}, "[]"),
        ({"notAfter": at()}, at()),
        ({"dependsOn": [], "notAfter": at()}, at()),
        ({"dependsOn": [{"name": "a"}], "notBefore": at()}, at()),
        ({}, None),
    ],
)
def test_the_gate_shows_the_first_thing_that_holds_a_job_back(
    space: Space, spec: dict[str, Any], gate: str | None
) -> None:
    space.admin.create(collection_path(space.name, JOBS), job("one", **spec)).object()
    assert rows(space.admin, space.name)["one"][columns.GATE] == gate


def test_queue_and_cron_columns_print(kubectl: Callable[..., str], space: Space) -> None:
    space.admin.create(
        collection_path(space.name, QUEUES), queue("fast", maxConcurrency=4)
    ).object()
    counts = [{"phase": "Queued", "count": 11}, {"phase": "DeadLetter", "count": 2}]
    path = f"{collection_path(space.name, QUEUES)}/fast/status"
    status = {"counts": counts, "workers": 3, "oldestQueuedSeconds": 70}
    space.operator().merge(path, {"status": status}).object()
    header, line = kubectl("get", "aq").splitlines()
    counted = ["QUEUED", "RUNNING", "DEAD", "OLDEST", "WORKERS"]
    assert header.split() == ["NAME", "PAUSED", "LIMIT", *counted, "AGE"]
    assert line.split()[:7] == ["fast", "false", "4", "11", "2", "70", "3"]

    space.admin.create(collection_path(space.name, CRON_JOBS), cron_job()).object()
    assert "0 3 * * *" in kubectl("get", "acj")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"type": ""}, "spec.type"),
        ({"type": "white space"}, "spec.type"),
        ({"queue": "UPPER"}, "spec.queue"),
        ({"priority": 1001}, "spec.priority"),
        ({"leaseDurationSeconds": 4}, "spec.leaseDurationSeconds"),
        ({"notBefore": "tomorrow"}, "spec.notBefore"),
        *(({"notAfter": time}, "spec.notAfter") for time in UNREADABLE),
        ({"retryPolicy": {"maxRetries": -1}}, "spec.retryPolicy.maxRetries"),
        ({"retryPolicy": {"backoff": "Linear"}}, "spec.retryPolicy.backoff"),
        ({"retryPolicy": {"jitter": 1.5}}, "spec.retryPolicy.jitter"),
        ({"retryPolicy": {"retryOn": ["a" * 65]}}, "spec.retryPolicy.retryOn[0]"),
        ({"dependsOn": [{"name": "a"}, {"name": "a"}]}, "spec.dependsOn"),
        ({"notBefore": at(2), "notAfter": at(1)}, "spec.notAfter"),
        (
            {"retryPolicy": {"initialDelaySeconds": 2, "maxDelaySeconds": 1}},
            "spec.retryPolicy.maxDelaySeconds",
        ),
        ({"payloadFrom": {}}, "spec.payloadFrom"),
        ({"payload": 1, "payloadFrom": {"uri": "s3://a"}}, "spec.payloadFrom"),
        ({"request": {"headers": {"a": "1"}}}, "spec.request.headers.a"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_bad_manifest_is_refused_by_the_name_of_the_field(
    space: Space, spec: dict[str, Any], field: str
) -> None:
    answer = space.admin.create(collection_path(space.name, JOBS), job(**spec))
    assert answer.status == 422
    assert field in answer.message


@pytest.mark.parametrize(
    "time",
    [at(), "2026-11-21T15:00:00Z", "2026-11-21T15:00:00.123456+05:30", "9999-12-31T23:59:59-14:00"],
)
def test_what_time_the_api_server_accepts_can_be_read(space: Space, time: str) -> None:
    space.admin.create(collection_path(space.name, JOBS), job(notAfter=time)).object()
    assert parse_timestamp(time).tzinfo is not None


def test_a_manifest_without_a_type_is_refused_by_the_name_of_the_field(space: Space) -> None:
    body = {**job(), "spec": {}}
    answer = space.admin.create(collection_path(space.name, JOBS), body)
    assert answer.status == 422
    assert "spec.type: Required value" in answer.message


def test_a_misspelt_field_is_named_by_kubectl(control_plane: ControlPlane, namespace: str) -> None:
    body = json.dumps(job(priorty=1))
    done = control_plane.kubectl(
        "create", "--filename=-", f"--namespace={namespace}", input=body, check=False
    )
    assert done.returncode != 0
    assert "priorty" in done.stderr


@pytest.mark.parametrize(
    "payload",
    [None, True, 3, 1.5, "text", [], {}, [1, None, {"a": None}], {"a": {"b": [None]}}],
    ids=repr,
)
def test_any_json_is_a_payload_and_comes_back_as_it_was(space: Space, payload: Any) -> None:
    created = space.admin.create(collection_path(space.name, JOBS), job(payload=payload)).object()
    assert created["spec"].get("payload") == payload


@pytest.mark.parametrize("type_name", ["SEND_EMAIL", "report.daily", "a/b", "x"])
def test_handlers_may_be_named_in_either_style(space: Space, type_name: str) -> None:
    assert space.admin.create(collection_path(space.name, JOBS), job(type=type_name)).accepted


def test_wait_for_a_condition_works(kubectl: Callable[..., str], space: Space) -> None:
    space.admin.create(collection_path(space.name, JOBS), job("one")).object()
    printed = kubectl("wait", "aj/one", "--for=jsonpath={.status.phase}=Queued", "--timeout=5s")
    assert "condition met" in printed
