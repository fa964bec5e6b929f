"""Several replicas, and what becomes of jobs when they die or are replaced."""

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self

import httpx
import pytest

from asyncjob.names import JOBS, QUEUES, collection_path
from integration.gateway.conftest import Site
from support.driven.jobs import until
from support.processes.gateway import GatewayProcess, get, post

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def replicas(site: Site) -> Iterator[list[GatewayProcess]]:
    with ExitStack() as running:
        started = [running.enter_context(site.gateway("--open", "--grace=5")) for _ in range(3)]
        yield [replica.until_ready() for replica in started]


def submit(url: str, key: str, **more: object) -> httpx.Response:
    return post(
        f"{url}/api/v1/jobs",
        {"type": "test", "payload": {"key": key}, "idempotencyKey": key, **more},
    )


def jobs(site: Site) -> list[dict[str, dict[str, str]]]:
    found: list[dict[str, dict[str, str]]] = site.space.admin.get(
        collection_path(site.space.name, JOBS)
    ).object()["items"]
    return found


def test_fifty_clients_with_one_key_get_one_job_from_three_replicas(
    site: Site, replicas: list[GatewayProcess]
) -> None:
    begin = threading.Barrier(50)

    def at_once(number: int) -> httpx.Response:
        begin.wait()
        return submit(replicas[number % 3].url, "the-one")

    with ThreadPoolExecutor(50) as clients:
        answers = list(clients.map(at_once, range(50)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum(answer.json()["created"] for answer in answers) == 1
    assert len([job for job in jobs(site) if job["spec"].get("idempotencyKey") == "the-one"]) == 1

    other = submit(replicas[1].url, "the-one", payload={"key": "another"})
    assert (other.status_code, other.json()["type"]) == (422, "/problems/key-reused")
    assert other.json()["jobId"] == answers[0].json()["id"]


def test_replicas_fill_a_limited_queue_and_go_beyond_it_by_one_job_each_at_most(
    site: Site, replicas: list[GatewayProcess]
) -> None:
    queue = {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncQueue",
        "metadata": {"name": "shared"},
        "spec": {"maxQueued": 20},
    }
    site.space.admin.create(collection_path(site.space.name, QUEUES), queue).object()
    for replica in replicas:
        until(lambda: get(f"{replica.url}/api/v1/queues/shared").json()["configured"], 10)  # noqa: B023  # called at once
    begin = threading.Barrier(60)

    def at_once(number: int) -> int:
        begin.wait()
        body = {"type": "test", "queue": "shared"}
        return post(f"{replicas[number % 3].url}/api/v1/jobs", body).status_code

    codes: list[int] = []
    with ThreadPoolExecutor(60) as clients:
        while not codes or codes.count(202) < 20:  # a slow watch refuses some that had room
            codes += clients.map(at_once, range(60))
    assert set(codes) == {202, 429}
    assert 20 <= codes.count(202) <= 20 + len(replicas) - 1
    assert sum(job["spec"].get("queue") == "shared" for job in jobs(site)) == codes.count(202)


def test_one_of_many_holds_a_deduplication_id_and_the_others_are_told_which(
    site: Site, replicas: list[GatewayProcess]
) -> None:
    begin = threading.Barrier(20)

    def at_once(number: int) -> httpx.Response:
        begin.wait()
        body = {"type": "test", "payload": number, "deduplicationId": "mailbox"}
        return post(f"{replicas[number % 3].url}/api/v1/jobs", body)

    with ThreadPoolExecutor(20) as clients:
        answers = list(clients.map(at_once, range(20)))
    accepted = [answer for answer in answers if answer.status_code == 202]
    refused = [answer for answer in answers if answer.status_code == 409]
    assert (len(accepted), len(refused)) == (1, 19)
    assert {answer.json()["jobId"] for answer in refused} == {accepted[0].json()["id"]}


def test_a_replica_killed_right_after_the_insert_leaves_one_job_that_the_repeat_finds(
    site: Site, replicas: list[GatewayProcess], tmp_path: Path
) -> None:
    stalled = tmp_path / "stalled"
    environment = {"STALLED_FILE": str(stalled)}
    module = "support.programs.stalling_gateway"
    dying = site.gateway("--open", module=module, environment=environment)
    with dying, ThreadPoolExecutor(1) as client:
        dying.until_ready()
        lost = client.submit(submit, dying.url, "once")
        until(stalled.exists, 10, "the insert")
        [inserted] = [job for job in jobs(site) if job["spec"].get("idempotencyKey") == "once"]
        dying.kill()
        with pytest.raises(httpx.TransportError):
            lost.result()
    for replica in replicas:
        repeat = submit(replica.url, "once")
        assert repeat.status_code == 202
        assert repeat.json() == {
            "id": inserted["metadata"]["name"],
            "created": False,
            "phase": "Queued",
        }


class Load:
    """Clients that submit one job after the other, each until it is accepted by some replica."""

    def __init__(self, urls: list[str]) -> None:
        self.accepted: dict[str, str] = {}
        self.refused: list[str] = []
        self._urls = urls
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(2)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def has(self, count: int) -> bool:
        """Return whether so many have been accepted."""
        return len(self.accepted) >= count

    def _run(self, number: int) -> None:
        urls = itertools.cycle(self._urls)
        for count in itertools.count():
            key = f"load-{number}-{count}"
            while key not in self.accepted:
                self._try(next(urls), key)
            if self._enough.is_set():
                return

    def _try(self, url: str, key: str) -> None:
        try:
            answer = submit(url, key)
        except httpx.TransportError:  # it is away; the next one is not
            self._enough.wait(0.02)
            return
        if answer.status_code == 202:
            self.accepted[key] = answer.json()["id"]
        elif answer.status_code != 503:
            self.refused.append(answer.text)


@pytest.mark.soak
def test_no_accepted_job_is_lost_in_a_rolling_update_under_load(
    site: Site, replicas: list[GatewayProcess]
) -> None:
    with Load([replica.url for replica in replicas]) as load:
        for replica in replicas:
            reached = len(load.accepted) + 20
            until(partial(load.has, reached), 30, "some load")
            assert replica.stop() == 0
            replica.start().until_ready()
    stored = {
        job["spec"]["idempotencyKey"]: job["metadata"]["name"]
        for job in jobs(site)
        if job["spec"].get("idempotencyKey", "").startswith("load-")
    }
    assert stored == load.accepted
    assert load.refused == []
    listed = get(f"{replicas[0].url}/api/v1/jobs", limit=1).json()
    assert listed["total"] == len(jobs(site))
