"""The API server in memory answers as the real one does: the same requests to both, compared."""

import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from asyncjob.names import CRON_JOBS, JOBS, QUEUES, collection_path
from asyncjob.rules.managed_fields import MANAGED_FIELDS_POLICY, managed_fields_manifests
from asyncjob.rules.policy import ADMISSION_API_VERSION
from asyncjob_simulation.apiserver import Request
from support.cluster.api import Client
from support.cluster.enforcement import until, until_managed_fields_are_dropped
from support.cluster.identities import Space
from support.cluster.versions import MUTATING_POLICIES, SAME_WORDS, Need, needs
from support.in_memory.memory import MemoryClient, memory_admin, memory_server
from support.judging.transcripts import Transcript
from support.objects.builders import cron_job, job, queue

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
WATCH_SECONDS = "1"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"


class RecordedNamespace:
    """A namespace on one of the API servers, and what it has answered."""

    def __init__(self, space: Space) -> None:
        self.admin = space.admin
        self.space = space
        self.jobs = collection_path(space.name, JOBS)
        self.queues = collection_path(space.name, QUEUES)
        self.crons = collection_path(space.name, CRON_JOBS)
        self.transcript = Transcript()

    def note(self, title: str, *request: Any, **more: Any) -> dict[str, Any]:
        """Send a request and note what is answered."""
        return self.transcript.note(title, self.admin.request(*request, **more))

    def create(self, title: str, name: str, **spec: Any) -> dict[str, Any]:
        return self.note(title, "POST", self.jobs, job(name, **spec))

    def merge(self, title: str, name: str, body: Any, **more: Any) -> dict[str, Any]:
        content_type = "application/merge-patch+json"
        path = f"{self.jobs}/{name}"
        return self.note(title, "PATCH", path, body, content_type=content_type, **more)

    def patch(self, title: str, name: str, operations: Any) -> dict[str, Any]:
        content_type = "application/json-patch+json"
        return self.note(
            title, "PATCH", f"{self.jobs}/{name}", operations, content_type=content_type
        )

    def watch(self, title: str, path: str, accept: str = "application/json", **query: str) -> None:
        """Note what a watch of a second sends."""
        asked = {"watch": "true", "timeoutSeconds": WATCH_SECONDS, **query}
        events = [json.loads(line) for line in self._watch(path, accept, asked).splitlines()]
        shown = [_without_store_version(one) for one in events if _counts(one)]
        self.transcript.note_value(title, shown)

    def _watch(self, path: str, accept: str, query: dict[str, str]) -> bytes:
        if isinstance(self.admin, MemoryClient):
            request = Request("GET", path, query, accept=accept, token=self.admin.token)
            answer = self.admin.server.handle(request)
            if answer.watch is None:
                return answer.body
            return b"".join(line.data for line in answer.watch.lines())
        trust = ssl.create_default_context(cafile=self.admin.ca_file)
        server = urlsplit(self.admin.url).netloc
        headers = {"Authorization": f"Bearer {self.admin.token}", "Accept": accept}
        with closing(http.client.HTTPSConnection(server, timeout=60, context=trust)) as connection:
            connection.request("GET", f"{path}?{urlencode(query)}", headers=headers)
            return connection.getresponse().read()


def _counts(event: dict[str, Any]) -> bool:
    """Return whether an event comes for sure: bookmarks but the first come by the clock."""
    return event.get("type") != "BOOKMARK" or "initial-events-end" in json.dumps(event)


def _without_store_version(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event, without the version of a bookmark: others write to the store meanwhile."""
    if event.get("type") == "BOOKMARK":
        shown = event["object"]
        for one in [shown, *(row["object"] for row in shown.get("rows") or ())]:
            assert int(one["metadata"].pop("resourceVersion")) > 0
    return event


def life_of_an_object(on: RecordedNamespace) -> None:
    made = on.create("create", "a", payload={"x": 1, "y": [None]}, retryPolicy={"maxRetries": 2})
    on.create("create again", "a")
    on.merge("patch nothing", "a", {"spec": {"priority": 0}})
    on.merge("patch", "a", {"spec": {"priority": 1}, "metadata": {"labels": {"k": "v"}}})
    on.merge("patch by version", "a", {"metadata": {"resourceVersion": "1"}, "spec": {}})
    on.merge("patch by uid", "a", {"metadata": {"uid": "other"}, "spec": {"priority": 2}})
    on.merge("take away", "a", {"metadata": {"labels": None, "annotations": {"n": "1"}}})
    on.merge("dry", "a", {"spec": {"priority": 9}}, query={"dryRun": "All"})
    got = on.note("get", "GET", f"{on.jobs}/a")
    on.note("replace without version", "PUT", f"{on.jobs}/a", job("a", priority=3))
    on.note("replace", "PUT", f"{on.jobs}/a", {**got, "spec": {**got["spec"], "priority": 3}})
    on.note("replace an old version", "PUT", f"{on.jobs}/a", got)
    on.note("metadata", "GET", f"{on.jobs}/a", accept=METADATA)
    uid = made["metadata"]["uid"]
    for title, wanted in (("uid", {"uid": "x"}), ("version", {"resourceVersion": "1"})):
        on.note(f"delete by {title}", "DELETE", f"{on.jobs}/a", {"preconditions": wanted})
    on.note("dry delete", "DELETE", f"{on.jobs}/a", {"dryRun": ["All"]})
    on.note("delete", "DELETE", f"{on.jobs}/a", {"preconditions": {"uid": uid}})
    for method in ("GET", "DELETE"):
        on.note(f"{method} what is gone", method, f"{on.jobs}/a")
    on.merge("patch what is gone", "a", {})


def invalid_objects(on: RecordedNamespace) -> None:
    long, many = "a" * 70, [{"name": f"a{number}"} for number in range(30)]
    specs: dict[str, dict[str, Any]] = {
        "type": {"priority": "x"},
        "float": {"priority": 1.5},
        "maximum": {"priority": 5000},
        "minimum": {"priority": -5000},
        "pattern": {"queue": "A B"},
        "enum": {"retryPolicy": {"backoff": "zz"}},
        "two at once": {"priority": 5000, "queue": "A B"},
        "long": {"queue": long},
        "empty": {"queue": ""},
        "no time": {"notBefore": "2026-99-01T00:00:00Z"},
        "too many": {"dependsOn": many},
        "missing below": {"dependsOn": [{}]},
        "null for a default": {"priority": None},
        "null for none": {"type": None},
        "null payload": {"payload": None},
        "unknown fields": {"zz": 1, "retryPolicy": {"yy": {"xx": 1}}},
        "rule": {"payloadFrom": {}},
        "rule with a path": {"retryPolicy": {"initialDelaySeconds": 10, "maxDelaySeconds": 9}},
        "times in other zones": {
            "notBefore": "2026-01-01T01:00:00+02:00",
            "notAfter": "2026-01-01T00:00:00Z",
        },
        "the same time twice": {
            "notBefore": "2026-01-01T02:00:00+02:00",
            "notAfter": "2026-01-01T00:00:00.000000000Z",
        },
    }
    for title, spec in specs.items():
        body = job("b", **spec)
        on.note(title, "POST", on.jobs, body, query={"dryRun": "All"})
    strict = {"dryRun": "All", "fieldValidation": "Strict"}
    on.note("strict", "POST", on.jobs, job("b", zz=1), query=strict)
    ignore = {"dryRun": "All", "fieldValidation": "Ignore"}
    on.note("ignored", "POST", on.jobs, job("b", zz=1), query=ignore)
    on.create("bad name", "A_b")
    on.note("long name", "POST", on.jobs, job("a" * 254))
    on.note("no spec", "POST", on.jobs, {**job("b"), "spec": None})
    on.note("no name", "POST", on.jobs, {**job("b"), "metadata": {}})
    on.note("wrong kind", "POST", on.jobs, {**job("b"), "kind": "Other"})
    elsewhere = {"name": "b", "namespace": "elsewhere"}
    on.note("other namespace", "POST", on.jobs, {**job("b"), "metadata": elsewhere})
    nowhere = on.jobs.replace(on.space.name, "nowhere")
    on.note("no namespace", "POST", nowhere, job("b"))


def json_patches(on: RecordedNamespace) -> None:
    on.create("create", "a", dependsOn=[{"name": "x"}, {"name": "y"}])
    for title, operations in {
        "test holds": [{"op": "test", "path": "/spec/type", "value": "test"}],
        "test of absence": [{"op": "test", "path": "/spec/cancel", "value": None}],
        "test fails": [{"op": "test", "path": "/status/claim", "value": "x"}],
        "replace": [{"op": "replace", "path": "/spec/priority", "value": 4}],
        "add": [{"op": "add", "path": "/metadata/labels", "value": {"a/b": "c"}}],
        "escaped": [{"op": "replace", "path": "/metadata/labels/a~1b", "value": "d"}],
        "remove": [{"op": "remove", "path": "/metadata/labels"}],
        "remove what is not there": [{"op": "remove", "path": "/spec/zz"}],
        "below nothing": [{"op": "add", "path": "/spec/zz/yy", "value": 1}],
        "copy": [{"op": "copy", "from": "/spec/type", "path": "/spec/concurrencyKey"}],
        "no list": {"op": "test", "path": "/spec", "value": 1},
        "nothing": [],
    }.items():
        on.patch(title, "a", operations)


def lists(on: RecordedNamespace) -> None:
    for number in range(5):
        labels = {"even": str(number % 2 == 0), "n": str(number)}
        body = job(f"j{number}", queue="a" if number < 3 else "b")
        on.note(
            "create", "POST", on.jobs, {**body, "metadata": {**body["metadata"], "labels": labels}}
        )
    on.note("empty", "GET", on.queues)
    on.note("all", "GET", on.jobs)
    page = on.note("page 1", "GET", on.jobs, query={"limit": "2"})
    on.note("meanwhile", "DELETE", f"{on.jobs}/j3", {})
    on.create("meanwhile", "j9")
    token = page["metadata"]["continue"]
    page = on.note("page 2", "GET", on.jobs, query={"limit": "2", "continue": token})
    token = page["metadata"]["continue"]
    on.note("page 3", "GET", on.jobs, query={"limit": "2", "continue": token})
    exact = {
        "resourceVersionMatch": "Exact",
        "resourceVersion": page["metadata"]["resourceVersion"],
    }
    on.note("as it was", "GET", on.jobs, query=exact)
    for selector in (
        "even=True",
        "even!=True",
        "n in (1,2)",
        "n notin (1,2)",
        "zz",
        "!zz",
        "n,even==False",
    ):
        query = {"labelSelector": selector, "limit": "2"}
        on.note(selector, "GET", on.jobs, query=query, accept=METADATA_LIST)
    for selector in (
        "spec.queue=a",
        "metadata.name=j1",
        "status.phase!=Queued",
        "spec.type==test,spec.queue=b",
    ):
        on.note(selector, "GET", on.jobs, query={"fieldSelector": selector}, accept=METADATA_LIST)
    on.note("bad field", "GET", on.jobs, query={"fieldSelector": "spec.zz=1"})
    on.note("bad label", "GET", on.jobs, query={"labelSelector": "a b"})
    on.note("table", "GET", on.jobs, query={"includeObject": "None"}, accept=TABLE)
    on.note("table page", "GET", on.jobs, query={"limit": "1"}, accept=TABLE)


def watches(on: RecordedNamespace) -> None:
    first = on.create(
        "create", "a", notBefore="2027-01-01T00:00:00Z", retryPolicy={"maxRetries": 2}
    )
    version = first["metadata"]["resourceVersion"]
    on.create("create", "b", dependsOn=[{"name": "x"}])
    on.merge("change", "a", {"spec": {"priority": 7}, "metadata": {"labels": {"k": "v"}}})
    on.note("delete", "DELETE", f"{on.jobs}/b", {})
    on.merge("unlabel", "a", {"metadata": {"labels": None}})
    on.watch("from a version", on.jobs, resourceVersion=version)
    on.watch("by field", on.jobs, resourceVersion=version, fieldSelector="metadata.name=b")
    on.watch("by label", on.jobs, resourceVersion=version, labelSelector="k=v")
    on.watch("by phase", on.jobs, resourceVersion=version, fieldSelector="status.phase=Running")
    marks = {"allowWatchBookmarks": "true"}
    on.watch("from nothing", on.jobs, **marks)
    on.watch("table", on.jobs, TABLE, **marks, includeObject="None")
    on.watch("metadata", on.jobs, METADATA, resourceVersion=version)
    on.watch("bad field", on.jobs, fieldSelector="spec.zz=1")
    on.watch("no number", on.jobs, resourceVersion="abc")


def finalizers_and_pods(on: RecordedNamespace) -> None:
    body = queue("kept")
    body["metadata"]["finalizers"] = ["example.org/kept"]
    on.note("create", "POST", on.queues, body)
    on.note("delete", "DELETE", f"{on.queues}/kept", {})
    on.note("again", "DELETE", f"{on.queues}/kept", {})
    path, merge = f"{on.queues}/kept", "application/merge-patch+json"
    on.note("let go", "PATCH", path, {"metadata": {"finalizers": None}}, content_type=merge)
    on.note("gone", "GET", path)


def generated_names(on: RecordedNamespace) -> None:
    body = {**job("x"), "metadata": {"generateName": "made-"}}
    names = [on.admin.create(on.jobs, body).object()["metadata"]["name"] for _ in range(3)]
    shapes = [(name[:5], len(name)) for name in names]
    on.transcript.note_value("names", [shapes, len(set(names))])


def who_may(on: RecordedNamespace) -> None:
    joe = on.admin.sending({"Impersonate-User": "joe", "Impersonate-Group": "people"})
    for title, answer in {
        "list": joe.get(on.jobs),
        "get": joe.get(f"{on.jobs}/a"),
        "create": joe.create(on.jobs, job("a")),
        "status": joe.merge(f"{on.jobs}/a/status", {}),
        "delete": joe.delete(f"{on.jobs}/a"),
        "all": joe.get(f"/apis/asyncjob.dev/v1alpha1/{JOBS}"),
        "nobody": on.admin.with_token("no-such-token").get(on.jobs),
    }.items():
        on.transcript.note(title, answer)
    worker = on.space.worker("worker-0")
    for title, answer in {
        "worker lists": worker.client.get(on.jobs),
        "worker creates": worker.client.create(on.jobs, job("a")),
        "worker deletes": worker.client.delete(f"{on.jobs}/a"),
    }.items():
        on.transcript.note(title, answer)
    reviews = "/apis/authorization.k8s.io/v1"
    attributes = {
        "namespace": on.space.name,
        "verb": "operate",
        "group": "asyncjob.dev",
        "resource": JOBS,
    }
    spec = {"resourceAttributes": attributes}
    for name, who in (("worker", worker.client), ("operator", on.space.operator())):
        answer = who.create(f"{reviews}/selfsubjectaccessreviews", {"spec": spec})
        allowed = answer.object()["status"]["allowed"]
        on.transcript.note_value(f"{name} may operate", allowed)
        user = f"system:serviceaccount:{on.space.name}:asyncjob-{name}"
        asked = {"spec": {**spec, "user": user}}
        answer = on.admin.create(f"{reviews}/subjectaccessreviews", asked)
        allowed = answer.object()["status"]["allowed"]
        on.transcript.note_value(f"{name} may operate, says another", allowed)
        answer = who.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        user = answer.object()["status"]["userInfo"]
        on.transcript.note_value(f"{name} asks who it is", [user["username"], *user["groups"]])
    for token in (worker.client.token, "no-such-token"):
        body = {"spec": {"token": token}}
        answer = on.admin.create("/apis/authentication.k8s.io/v1/tokenreviews", body)
        status = answer.object()["status"]
        user = status["user"]
        extra = user.get("extra") or {}
        told = {key: extra[key] for key in sorted(extra) if "/pod-" in key}
        on.transcript.note_value("whose", [status.get("authenticated"), user.get("username"), told])
        on.transcript.note_value("groups", sorted(user.get("groups") or ()))


def status_and_spec(on: RecordedNamespace) -> None:
    on.create("create with a status", "a")
    with_status = {**job("b"), "status": {"phase": "Succeeded", "attempt": 7}}
    on.note("status at creation", "POST", on.jobs, with_status)
    on.merge("status beside the spec", "a", {"spec": {"priority": 2}, "status": {"attempt": 3}})
    on.merge("spec beside the status", "a/status", {"spec": {"priority": 5}, "status": {}})
    on.merge("an illegal status", "a/status", {"status": {"attempt": 9}})
    on.merge("an illegal phase", "a/status", {"status": {"phase": "Succeeded"}})
    on.note("get the status", "GET", f"{on.jobs}/a/status")
    on.note("schedule", "POST", on.crons, cron_job("c"))
    on.note("queue", "POST", on.queues, queue("q", maxConcurrency=1))


def jobs_that_nobody_applies(on: RecordedNamespace) -> None:
    """With the policy in force for the namespace, whatever others are in force elsewhere."""
    policy, binding = managed_fields_manifests()
    name = f"{MANAGED_FIELDS_POLICY}.{on.space.name}"
    only_here = {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: on.space.name}}}
    spec = {"policyName": name, "matchResources": only_here}
    for plural, body in (
        ("mutatingadmissionpolicies", {**policy, "metadata": {"name": name}}),
        ("mutatingadmissionpolicybindings", {**binding, "metadata": {"name": name}, "spec": spec}),
    ):
        on.admin.create(f"/apis/{ADMISSION_API_VERSION}/{plural}", body).object()
    until_managed_fields_are_dropped(on.admin, on.space.name)

    on.create("create", "plain")
    on.merge("patch", "plain", {"spec": {"priority": 1}})
    on.note("replace", "PUT", f"{on.jobs}/plain", on.note("get", "GET", f"{on.jobs}/plain"))
    applied = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}
    by_client = job("applied")
    by_client["metadata"].update(applied)
    on.note("create as kubectl apply does", "POST", on.jobs, by_client)
    on.merge("patch that", "applied", {"spec": {"priority": 1}})
    on.create("create what is invalid", "invalid", priority="x", dependsOn=[{}])
    on.note("queue", "POST", on.queues, queue("q"))


SCENARIOS: list[Callable[[RecordedNamespace], None]] = [
    life_of_an_object,
    invalid_objects,
    json_patches,
    lists,
    watches,
    finalizers_and_pods,
    generated_names,
    who_may,
    status_and_spec,
    jobs_that_nobody_applies,
]

NEEDED: dict[Callable[[RecordedNamespace], None], Need] = {
    life_of_an_object: SAME_WORDS,
    invalid_objects: SAME_WORDS,
    watches: (36, "an older one refuses a watch of tables from nothing with bookmarks"),
    status_and_spec: SAME_WORDS,
    jobs_that_nobody_applies: MUTATING_POLICIES,
}


@pytest.fixture(scope="module", autouse=True)
def served(admin: Client) -> None:
    """Wait until all resources can be listed: a server that has just started says 429 to that."""
    for plural in (JOBS, QUEUES, CRON_JOBS):
        for accept in ("application/json", TABLE, METADATA_LIST):
            read = partial(admin.get, collection_path("default", plural), accept=accept)
            until(lambda answer: answer.status == HTTPStatus.OK, read, f"{plural} are served")


@pytest.fixture(autouse=True)
def written_by_others(admin: Client, served: None) -> Iterator[None]:
    """Have somebody else write to the store all the time, as others do in a real one."""
    enough = threading.Event()
    maps = "/api/v1/namespaces/default/configmaps"

    def write() -> None:
        while not enough.wait(0.02):
            body = {"metadata": {"generateName": "other-"}}
            admin.create(maps, body).object()

    writer = threading.Thread(target=write)
    writer.start()
    yield
    enough.set()
    writer.join()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_both_answer_alike(admin: Client, scenario: Callable[[RecordedNamespace], None]) -> None:
    if scenario in NEEDED:
        needs(admin, NEEDED[scenario])
    name = f"contract-{scenario.__name__.replace('_', '-')}"
    real, memory = RecordedNamespace(Space(name, admin).create()), in_memory(name)
    scenario(real)
    scenario(memory)
    assert memory.transcript.entries == real.transcript.entries


def in_memory(name: str) -> RecordedNamespace:
    return RecordedNamespace(Space(name, memory_admin(memory_server())).create())
