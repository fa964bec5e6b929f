"""Lists of all namespaces, on an API server with jobs in two of them and rights that differ."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asyncjob.names import CRON_JOBS, JOBS, QUEUES, collection_path
from asyncjob_dev.api import write_kubeconfig
from support.processes.operator import RBAC, service_account
from support.processes.workers import WorkerNamespace

pytestmark = pytest.mark.integration

Say = Callable[..., str]

OTHER = "elsewhere"
SPEC = {"type": "unheard.of", "payload": {}}
SCHEDULE = {"schedule": "0 3 * * *", "jobTemplate": {"spec": SPEC}, "suspend": True}


def an_object(kind: str, name: str, spec: object) -> dict[str, object]:
    meta = {"name": name}
    return {"apiVersion": "asyncjob.dev/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}


@pytest.fixture(scope="module")
def other(ns: WorkerNamespace) -> Iterator[str]:
    """Make a second namespace with a job, a queue and a cron job of the same names."""
    api = ns.plane.api
    api.create("/api/v1/namespaces", {"metadata": {"name": OTHER}})
    for namespace in (OTHER, ns.namespace):
        job = an_object("AsyncJob", "twin", {**SPEC, "queue": "bare"})
        api.create(collection_path(namespace, JOBS), job)
        api.create(collection_path(namespace, QUEUES), an_object("AsyncQueue", "mail", {}))
        schedule = an_object("AsyncCronJob", "nightly", SCHEDULE)
        api.create(collection_path(namespace, CRON_JOBS), schedule)
    yield OTHER
    for plural, name in ((JOBS, "twin"), (QUEUES, "mail"), (CRON_JOBS, "nightly")):
        api.delete(f"{collection_path(ns.namespace, plural)}/{name}")


def rows(text: str, name: str) -> list[str]:
    """Return the namespaces of the rows with the name, in their order."""
    head, *rest = [line.split() for line in text.splitlines()]
    assert head[0] == "NAMESPACE"
    return [cells[0] for cells in rest if cells[1] == name]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("queue list", "mail"),
        ("queue list", "bare"),
        ("queue top --once", "mail"),
        ("cron list", "nightly"),
        ("list --type unheard.of", "twin"),
        ("list --type unheard.of -o wide", "twin"),
    ],
)
def test_what_two_namespaces_have_is_listed_with_where_it_is(
    say: Say, ns: WorkerNamespace, other: str, command: str, name: str
) -> None:
    both = sorted([ns.namespace, other])
    assert sorted(rows(say(*command.split(), "-A"), name)) == both
    found = json.loads(
        say(*command.removesuffix("-o wide").split(), "--all-namespaces", "-o", "json")
    )
    named = [one for one in found["items"] if one.get("id", one.get("name")) == name]
    assert sorted(one["namespace"] for one in named) == both
    assert "NAMESPACE" not in say(*command.split())


def test_queues_of_one_name_are_counted_apart(say: Say, ns: WorkerNamespace, other: str) -> None:
    found = json.loads(say("queue", "list", "-A", "-o", "json"))["items"]
    counts = {
        one["namespace"]: sum(one["counts"].values()) for one in found if one["name"] == "bare"
    }
    assert counts == {ns.namespace: 1, other: 1}
    (default,) = [
        one for one in found if (one["namespace"], one["name"]) == (ns.namespace, "default")
    ]
    assert default["workers"] == 1


def test_workers_are_listed_with_where_they_are(say: Say, ns: WorkerNamespace, other: str) -> None:
    assert rows(say("workers", "-A"), "worker-0") == [ns.namespace]


def test_one_who_may_list_one_namespace_only_is_told_to_name_it(
    say: Say, ns: WorkerNamespace, other: str, tmp_path: Path
) -> None:
    plane = ns.plane
    rules = [{"apiGroups": ["asyncjob.dev"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
    roles = f"/apis/{RBAC}/v1/namespaces/{other}"
    plane.api.create(f"{roles}/roles", {"metadata": {"name": "reader"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": other}
    role = {"apiGroup": RBAC, "kind": "Role", "name": "reader"}
    body = {"metadata": {"name": "reader"}, "roleRef": role, "subjects": [subject]}
    plane.api.create(f"{roles}/rolebindings", body)
    user = {"token": service_account(plane, other, "reader")}
    path = tmp_path / "reader"
    write_kubeconfig(path, url=plane.url, ca_file=plane.ca_file, user=user, namespace=other)
    for command in ("list", "watch", "queue list", "cron list", "workers"):
        said = say(*command.split(), "-A", f"--kubeconfig={path}", code=8)
        assert "-n NAME in place of -A" in said, command
    assert "twin" in say("list", f"--kubeconfig={path}")
