"""The whole API on a real API server: controls, lists, queues, events, and the limits on them."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOBS, JOBS, QUEUES, collection_path
from asyncjob_gateway.app import make_app
from integration.gateway.conftest import Site
from support.driven.jobs import until
from support.driven.lives import failed, promoted, succeeded
from support.objects.builders import cron_job
from support.processes.gateway import GatewayProcess

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def submit(http: httpx.Client, **fields: Any) -> str:
    answer = http.post("/api/v1/jobs", json={"type": "test", **fields})
    assert answer.status_code == 202, answer.text
    job_id: str = answer.json()["id"]
    return job_id


def names(page: httpx.Response) -> list[str]:
    assert page.status_code == 200, page.text
    return [item["id"] for item in page.json()["items"]]


def test_a_job_is_read_changed_cancelled_and_run_again(site: Site, http: httpx.Client) -> None:
    submit(http, name="one", payload=[1, None, {"a": 1.5}], priority=3)
    job = http.get("/api/v1/jobs/one").json()
    assert (job["phase"], job["payload"], job["priority"]) == ("Queued", [1, None, {"a": 1.5}], 3)
    changed = http.patch("/api/v1/jobs/one", json={"suspend": True, "priority": 9}).json()
    assert (changed["suspended"], changed["priority"]) == (True, 9)
    assert http.patch("/api/v1/jobs/one", json={}).status_code == 422
    assert http.get("/api/v1/jobs/one/result").json()["type"] == "/problems/no-result"

    cancelling = http.delete("/api/v1/jobs/one")
    assert (cancelling.status_code, cancelling.json()["cancelling"]) == (202, True)
    site.life("one").bring(Phase.CANCELLED)
    assert http.delete("/api/v1/jobs/one").status_code == 200

    done = site.life("two")
    done.create(payload={"a": 1})
    done.bring(Phase.SUCCEEDED)
    assert http.get("/api/v1/jobs/two/result").json() == {"result": {"sum": 3}, "resultRef": None}
    assert http.get("/api/v1/jobs/two/history").json()[-1]["phase"] == "Succeeded"
    refused = http.delete("/api/v1/jobs/two")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/not-cancellable")
    again = http.post("/api/v1/jobs/two/rerun")
    assert (again.status_code, again.json()["id"]) == (202, "two-r1")
    assert again.headers["location"] == "/api/v1/jobs/two-r1"
    assert http.post("/api/v1/jobs/two/redrive").json()["type"] == "/problems/not-a-dead-letter"
    assert http.post("/api/v1/jobs/none/rerun").json()["type"] == "/problems/no-job"

    running = site.life("three")
    running.create()
    running.bring(Phase.RUNNING)
    hurry = http.patch("/api/v1/jobs/three", json={"priority": 1})
    assert (hurry.status_code, hurry.json()["type"]) == (409, "/problems/conflict")


def test_dead_letters_are_chosen_oldest_first_and_with_a_limit(
    site: Site, http: httpx.Client
) -> None:
    for name in ("dead-1", "dead-2", "dead-3"):
        life = site.life(name)
        life.create(type="mortal")
        life.bring(Phase.DEAD_LETTER)
    ask = {"selection": {"type": "mortal"}, "limit": 2}
    dry = http.post("/api/v1/jobs/redrive", json={**ask, "dryRun": True}).json()
    assert dry["matched"] == 3
    assert len(dry["done"]) == 2
    assert "redrive" not in site.life(dry["done"][0]).read()["spec"]
    assert http.post("/api/v1/jobs/redrive", json=ask).json()["done"] == dry["done"]
    assert site.life(dry["done"][0]).read()["spec"]["redrive"] == 1
    [left] = {"dead-1", "dead-2", "dead-3"} - set(dry["done"])
    assert http.post(f"/api/v1/jobs/{left}/dismiss").status_code == 202
    assert site.life(left).read()["spec"]["cancel"] is True
    misspelt = http.post("/api/v1/jobs/redrive", json={"selektion": {}})
    assert misspelt.json()["errors"] == [{"field": "selektion", "detail": "Unknown field"}]


def test_a_batch_is_done_one_by_one(http: httpx.Client) -> None:
    jobs = [
        {"type": "test", "idempotencyKey": "batch-1"},
        {"type": "no type"},
        {"type": "test", "idempotencyKey": "batch-1"},
        {"type": "test", "idempotencyKey": "batch-1", "priority": 5},
        "nonsense",
    ]
    report = http.post("/api/v1/jobs/batch", json={"jobs": jobs}).json()
    assert (report["accepted"], report["refused"]) == (2, 3)
    first, bad, second, reused, nonsense = report["items"]
    assert first["job"]["id"] == second["job"]["id"] == reused["error"]["jobId"]
    assert sorted([first["job"]["created"], second["job"]["created"]]) == [False, True]
    assert bad["error"]["detail"].startswith("jobs.1.type")
    assert nonsense["error"]["detail"].startswith("jobs.4")
    assert reused["error"]["status"] == 422
    assert http.post("/api/v1/jobs/batch", json={"jobs": []}).status_code == 422


def test_lists_have_what_was_just_submitted_and_select_by_every_filter(
    site: Site, http: httpx.Client
) -> None:
    submit(http, name="listed", type="seek.me", queue="attic", labels={"team": "mail"})
    child = {
        "metadata": {
            "name": "nightly-1",
            "labels": {"asyncjob.dev/cron-job": "nightly"},
            "annotations": {"asyncjob.dev/parent-name": "mother"},
        },
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncJob",
        "spec": {"type": "seek.me"},
    }
    site.space.admin.create(collection_path(site.space.name, JOBS), child).object()
    life = site.life("unlucky")
    life.create(type="seek.me")
    life.bring(Phase.DEAD_LETTER)
    everyone = ["listed", "nightly-1", "unlucky"]

    def found(**params: Any) -> list[str]:
        return sorted(names(http.get("/api/v1/jobs", params={"type": "seek.me", **params})))

    assert "listed" in found()
    until(lambda: found() == everyone and found(phase="DeadLetter") == ["unlucky"], 5)
    for params, expected in (
        ({"phase": ["Queued", "DeadLetter"]}, everyone),
        ({"queue": "attic"}, ["listed"]),
        ({"label": "team in (mail,post)"}, ["listed"]),
        ({"label": "!team"}, ["nightly-1", "unlucky"]),
        ({"parent": "mother"}, ["nightly-1"]),
        ({"cronJob": "nightly"}, ["nightly-1"]),
        ({"reason": "NotRetryable"}, ["unlucky"]),
        ({"text": "HOPELESS"}, ["unlucky"]),
        ({"olderThanSeconds": 3600}, []),
        ({"newerThanSeconds": 3600}, everyone),
    ):
        assert found(**params) == expected, params
    for params, field in (
        ({"phase": "Nowhere"}, "query.phase.0"),
        ({"label": "a=b=c"}, "query.label"),
        ({"cursor": "abc"}, "query.cursor"),
        ({"limit": 0}, "query.limit"),
        ({"colour": "red"}, "query.colour"),
    ):
        answer = http.get("/api/v1/jobs", params=params)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


def test_paging_neither_skips_nor_repeats_while_jobs_come_and_go(
    site: Site, http: httpx.Client
) -> None:
    before = {submit(http, type="paged") for _ in range(23)}
    seen: list[str] = []
    params: dict[str, Any] = {"type": "paged", "limit": 5}
    while True:
        page = http.get("/api/v1/jobs", params=params)
        seen += names(page)
        submit(http, type="paged")
        if page.json()["next"] is None:
            break
        params["cursor"] = page.json()["next"]
        gone = seen[0]
        site.space.admin.delete(f"{collection_path(site.space.name, JOBS)}/{gone}")
    assert len(seen) == len(set(seen))
    assert before <= set(seen)
    first = http.get("/api/v1/jobs", params={"type": "paged", "limit": 5}).json()
    assert first["total"] >= 23


def test_a_full_queue_refuses_what_is_new_and_knows_what_is_not(
    site: Site, http: httpx.Client
) -> None:
    queue = {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncQueue",
        "metadata": {"name": "narrow"},
        "spec": {"maxQueued": 2},
    }
    site.space.admin.create(collection_path(site.space.name, QUEUES), queue).object()
    until(lambda: http.get("/api/v1/queues/narrow").json()["configured"], 5)
    first = submit(http, queue="narrow", idempotencyKey="narrow-1")
    submit(http, queue="narrow")
    refused = http.post("/api/v1/jobs", json={"type": "test", "queue": "narrow"})
    assert (refused.status_code, refused.json()["type"]) == (429, "/problems/queue-full")
    assert int(refused.headers["retry-after"]) >= 1
    assert submit(http, queue="narrow", idempotencyKey="narrow-1") == first
    info = http.get("/api/v1/queues/narrow").json()
    assert (info["counts"], info["spec"]["maxQueued"]) == ({"Queued": 2}, 2)


def test_queues_appear_with_jobs_alone_and_are_paused_into_being(http: httpx.Client) -> None:
    submit(http, queue="improvised")
    listed = {queue["name"]: queue for queue in http.get("/api/v1/queues").json()}
    assert listed["improvised"]["configured"] is False
    assert listed["improvised"]["counts"] == {"Queued": 1}
    paused = http.post("/api/v1/queues/improvised/pause").json()
    assert (paused["paused"], paused["configured"]) == (True, True)
    assert http.post("/api/v1/queues/improvised/resume").json()["paused"] is False
    assert http.get("/api/v1/queues/unheard-of").json()["counts"] == {}


def test_cron_jobs_are_shown_triggered_and_suspended(site: Site, http: httpx.Client) -> None:
    body = cron_job("tidy", payload={"a": 1})
    site.space.admin.create(collection_path(site.space.name, CRON_JOBS), body).object()
    [listed] = until(
        lambda: [one for one in http.get("/api/v1/cron-jobs").json() if one["name"] == "tidy"], 10
    )
    assert listed["spec"] is None
    assert http.get("/api/v1/cron-jobs/tidy").json()["spec"]["schedule"]
    assert http.post("/api/v1/cron-jobs/tidy/trigger").json()["id"] == "tidy-t1"
    assert http.post("/api/v1/cron-jobs/tidy/suspend").json()["suspended"] is True
    assert http.post("/api/v1/cron-jobs/tidy/resume").json()["suspended"] is False
    assert http.get("/api/v1/cron-jobs/none").json()["type"] == "/problems/not-found"


def events(response: httpx.Response) -> Iterator[dict[str, str]]:
    """Yield what a stream carries: field → value, comments left out."""
    found: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if name and line[0] != ":":
            found[name] = value
        elif not line and "event" in found:
            yield found
            found = {}


def test_changes_come_as_events_and_who_comes_back_misses_none(
    site: Site, http: httpx.Client
) -> None:
    with http.stream("GET", "/api/v1/events", params={"type": "told"}) as response:
        told = events(response)
        submit(http, type="untold")
        submit(http, type="told", name="told-1")
        first = next(told)
        assert (first["event"], json.loads(first["data"])["id"]) == ("job", "told-1")
        assert "payload" not in json.loads(first["data"])
    submit(http, type="told", name="told-2")
    site.space.admin.delete(f"{collection_path(site.space.name, JOBS)}/told-1")
    back = {"Last-Event-ID": first["id"]}
    with http.stream("GET", "/api/v1/events", params={"type": "told"}, headers=back) as response:
        told = events(response)
        missed = [next(told), next(told)]
    assert [one["event"] for one in missed] == ["job", "deleted"]
    assert [json.loads(one["data"])["id"] for one in missed] == ["told-2", "told-1"]
    with http.stream("GET", "/api/v1/events", headers={"Last-Event-ID": "1"}) as response:
        assert next(events(response))["event"] == "resync"
    with http.stream("GET", "/api/v1/events") as response:
        comments = (line for line in response.iter_lines() if line == ": still here")
        assert next(comments)


def test_one_job_is_followed_to_its_end(site: Site, http: httpx.Client) -> None:
    life = site.life("followed")
    life.create()
    phases: list[str] = []
    begun = threading.Event()

    def follow() -> None:
        with http.stream("GET", "/api/v1/jobs/followed/events") as response:
            for event in events(response):
                phases.append(json.loads(event["data"])["phase"])
                begun.set()

    follower = threading.Thread(target=follow)
    follower.start()
    assert begun.wait(10)
    life.claim()
    life.move(failed, life.worker.client).object()
    until(lambda: "Retrying" in phases, 10, "the news")
    life.move(promoted).object()
    life.claim()
    life.move(succeeded, life.worker.client).object()
    follower.join(10)
    assert not follower.is_alive()
    assert phases == ["Queued", "Running", "Retrying", "Queued", "Running", "Succeeded"]
    last = life.read()["metadata"]["resourceVersion"]
    seen = {"Last-Event-ID": last}
    assert http.get("/api/v1/jobs/followed/events", headers=seen).status_code == 204
    assert http.get("/api/v1/jobs/nobody/events").status_code == 404


def test_what_it_does_is_counted_and_logged_without_secrets(
    http: httpx.Client, open_gateway: GatewayProcess
) -> None:
    secret = "s3cr3t-in-the-query"
    http.get("/api/v1/jobs", params={"text": secret}, headers={"X-Request-Id": "trace-me-1"})
    shown = open_gateway.metrics()
    counted = 'asyncjob_gateway_requests_total{code="200",method="GET",route="/api/v1/jobs"}'
    assert counted in shown
    assert 'asyncjob_gateway_cache_synced{namespace="' in shown
    log = until(lambda: _with(open_gateway.log.read_text(), "trace-me-1"), 5, "the line")
    assert secret not in log


def _with(log: str, text: str) -> str:
    return log if text in log else ""


EXAMPLES = [
    pytest.param(method.upper(), path, example["value"], id=f"{method} {path} {name}")
    for path, operations in make_app().openapi()["paths"].items()
    for method, operation in operations.items()
    for content in operation.get("requestBody", {}).get("content", {}).values()
    for name, example in content["examples"].items()
]


@pytest.mark.parametrize(("method", "path", "body"), EXAMPLES)
def test_each_example_of_the_document_is_accepted(
    site: Site, http: httpx.Client, method: str, path: str, body: Any
) -> None:
    if "{id}" in path:
        path = path.replace("{id}", submit(http))
    path = path.replace("{signal}", "approval")
    if "{name}" in path:
        site.space.admin.create(
            collection_path(site.space.name, CRON_JOBS), cron_job("of-the-document")
        ).object()
        path = path.replace("{name}", "of-the-document")
    answer = http.request(method, path, json=body)
    assert answer.status_code in {200, 202}, answer.text
    assert answer.json().get("refused", 0) == 0


def test_a_stop_ends_streams_and_lets_requests_finish(site: Site) -> None:
    with site.gateway("--open", "--grace=20") as stopping:
        stopping.until_ready()
        with stopping.client() as client, client.stream("GET", "/api/v1/events") as response:
            lines = response.iter_lines()
            assert next(lines) == ": following"
            assert stopping.process
            stopping.process.terminate()
            assert list(lines)  # to its end, which is no broken connection
        assert stopping.process.wait(10) == 0
