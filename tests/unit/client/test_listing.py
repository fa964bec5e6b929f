"""Lists, bulk actions, queues and workers straight on Kubernetes, on a server in memory."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from asyncjob import columns
from asyncjob.client.connection import Answer, Call
from asyncjob.client.errors import InvalidRequestError
from asyncjob.client.errors import NotFoundError as ClientNotFoundError
from asyncjob.client.kubernetes.calls import TABLE_CONTENT_TYPE, KubernetesCalls
from asyncjob.client.kubernetes.client import AsyncKubernetesJobsClient
from asyncjob.client.kubernetes.jobs import selector_params
from asyncjob.errors import ExpiredError, ObjectNotFoundError
from asyncjob.json_types import child, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import COMPONENT_LABEL, WORKER_COMPONENT
from asyncjob.rest.listing import Selection
from support.in_memory.fake_api import NAMESPACE, FakeApi, Step, client_of, iterate, run
from support.objects.builders import stored


def jobs(api: FakeApi) -> AsyncKubernetesJobsClient:
    return client_of(api, now=datetime(2026, 1, 1, 1, tzinfo=UTC))


def fake_api(*names: str, phase: str = "DeadLetter") -> FakeApi:
    """Return a server with jobs, the first of them the oldest."""
    api = FakeApi()
    for number, name in enumerate(names):
        obj: Any = stored(name, {"phase": phase})
        obj["metadata"] |= {"creationTimestamp": f"2026-01-01T00:00:0{number}Z", "uid": f"u-{name}"}
        api.put(obj)
    return api


def test_pages_meet_each_other_whatever_the_limit() -> None:
    api = fake_api("b", "a", "d", "c")
    for limit in range(1, 6):
        found, cursor = list[str](), None
        while True:
            page = run(jobs(api).page(Selection(), cursor, limit))
            found += [job.id for job in page.items]
            cursor = page.next
            if cursor is None:
                break
        assert found == ["c", "d", "a", "b"]
        assert page.total == 4


def test_the_server_is_asked_for_what_it_can_look_at() -> None:
    chosen = Selection(
        phase=[Phase.QUEUED],
        type="t",
        queue="q",
        label="a=b,c in (d)",
        cron_job="nightly",
        parent="dad",
    )
    fields, labels = (value for _, value in selector_params(chosen))
    left_out = [f"status.phase!={phase}" for phase in sorted(set(Phase) - {Phase.QUEUED})]
    assert fields.split(",") == ["spec.type=t", "spec.queue=q", *left_out]
    assert labels == "a=b,c in (d),asyncjob.dev/cron-job=nightly,asyncjob.dev/parent"
    assert selector_params(Selection()) == ()


def test_a_list_that_took_too_long_is_begun_again() -> None:
    class Forgetful(FakeApi):
        """Has pages of one object, and forgets once where a list went on."""

        forgets = True

        def do(self, step: Step) -> Answer:
            if not isinstance(step, Call):
                return super().do(step)
            params = dict(step.params)
            if "continue" in params and self.forgets:
                self.forgets = False
                raise ExpiredError("too old", status=410)
            return super().do(replace(step, params=tuple({**params, "limit": "1"}.items())))

    api = Forgetful()
    api.put(stored("a"))
    api.put(stored("b"))
    path = f"/apis/asyncjob.dev/v1alpha1/namespaces/{NAMESPACE}/asyncjobs"
    found = run(KubernetesCalls(api, 5.0).list_all(path, (), lambda obj: child(obj, "metadata")))
    assert [text(metadata, "name") for metadata in found] == ["a", "b"]
    assert len(api.calls) == 3


def test_later_pages_of_a_list_as_of_a_version_are_asked_for_by_their_token_alone() -> None:
    class Paged(FakeApi):
        """Has two pages."""

        def do(self, step: Step) -> Answer:
            assert isinstance(step, Call)
            self.calls.append(step)
            more = {} if "continue" in dict(step.params) else {"continue": "token"}
            return Answer({"metadata": more, "items": [{}]})

    api = Paged()
    version = (("resourceVersion", "7"), ("resourceVersionMatch", "Exact"))
    params = (("labelSelector", "a=b"), *version)
    assert len(run(KubernetesCalls(api, 5.0).list_all("/path", params, lambda obj: obj))) == 2
    first, second = (dict(call.params) for call in api.calls)
    assert first["resourceVersionMatch"] == "Exact"
    assert {*second} == {"limit", "continue", "labelSelector"}


def test_a_cursor_of_nonsense_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="cursor"):
        run(jobs(fake_api()).page(Selection(), "nonsense", 5))


def test_bulk_actions_take_the_oldest_and_only_dead_letters() -> None:
    api = fake_api("b", "a", "c")
    api.put(stored("live"))
    dry = run(jobs(api).redrive_many(Selection(), limit=2, dry_run=True))
    assert (dry.matched, dry.done, api.writes) == (3, ["b", "a"], [])
    done = run(jobs(api).redrive_many(Selection(), limit=2, dry_run=False))
    assert (done.matched, done.done, done.failed) == (3, ["b", "a"], [])
    assert [api.job(name)["spec"].get("redrive") for name in "abc"] == [1, 1, None]
    none = Selection(phase=[Phase.QUEUED])
    assert run(jobs(api).dismiss_many(none, limit=9, dry_run=False)).matched == 0


def test_one_of_many_that_cannot_be_done_stops_none_of_the_others() -> None:
    api = fake_api("a", "b")

    def revive() -> None:
        api.meanwhile = lambda: None
        api.set("a", phase="Queued")

    api.meanwhile = revive
    report = run(jobs(api).dismiss_many(Selection(), limit=9, dry_run=False))
    assert report.done == ["b"]
    (failed,) = report.failed
    assert (failed.id, "Queued" in failed.detail) == ("a", True)
    assert failed.detail.endswith("(asyncjob explain not-a-dead-letter)")


def test_a_list_hands_out_all() -> None:
    api = fake_api("a", "b")
    assert [job.id for job in iterate(jobs(api).list(Selection(), page_size=1))] == ["b", "a"]


def test_what_workers_run_is_counted_without_reading_a_job() -> None:
    class Tables(FakeApi):
        """Has two running jobs, and the CRD of this version or of the one before."""

        names = (columns.NAME, *(column.name for column in columns.JOB_COLUMNS))

        def do(self, step: Step) -> Answer:
            if not isinstance(step, Call) or not step.path.endswith("/asyncjobs"):
                return super().do(step)
            self.calls.append(step)
            cells = ["w-0" if name == columns.WORKER else None for name in self.names]
            return Answer({"rows": [{"cells": cells, "object": None}] * 2})

    api = Tables()
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    labels = {COMPONENT_LABEL: WORKER_COMPONENT}
    spec = {"holderIdentity": "w-0/1", "renewTime": "2026-01-01T00:59:40.000000Z"}
    meta = {"name": "asyncjob-worker-w-0", "namespace": NAMESPACE, "labels": labels}
    api.objects.put(f"{leases}/asyncjob-worker-w-0", {"metadata": meta, "spec": spec})
    (worker,) = run(jobs(api).workers())
    assert (worker.pod, worker.running) == ("w-0", 2)
    asked = [call for call in api.calls if call.path.endswith("/asyncjobs")]
    assert [call.accept for call in asked] == [TABLE_CONTENT_TYPE]
    api.names = api.names[:-1]
    assert [one.running for one in run(jobs(api).workers())] == [0]


def test_numbers_that_make_no_sense_are_named() -> None:
    api = fake_api("a")
    with pytest.raises(InvalidRequestError, match="limit: 0 is not an integer from 1"):
        run(jobs(api).page(Selection(), None, 0))
    with pytest.raises(InvalidRequestError, match="limit: 0 is not an integer from 1"):
        run(jobs(api).redrive_many(Selection(), limit=0, dry_run=True))
    with pytest.raises(InvalidRequestError, match="priority: 5000 is not an integer from -1000"):
        run(jobs(api).set_priority("a", 5000))
    assert api.writes == []


def test_a_resource_type_that_is_not_installed_is_not_taken_for_a_missing_job() -> None:
    api = fake_api()
    api.error = ObjectNotFoundError("404 page not found", status=404)
    client = jobs(api)
    for work in (client.get("a"), client.cron_job("a"), client.queues()):
        with pytest.raises(ClientNotFoundError, match="are the resource types installed") as caught:
            run(work)
        assert type(caught.value) is ClientNotFoundError
