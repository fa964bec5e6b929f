"""Results that lie in a store: fetched without holding up the caller's event loop."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from asyncjob.client import AsyncJobsClient, JobsClient
from asyncjob.client.async_shell import AsyncShell
from asyncjob.client.kubernetes import KubernetesOperations
from asyncjob.client.steps import Answer, Step
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import Json
from asyncjob.models.job_status import ResultReference
from support.builders import stored
from support.fake_api import NAMESPACE, FakeApi

REFERENCE: Any = {"uri": "s3://bucket/key", "sha256": "0" * 64, "sizeBytes": 3}


class SlowStore:
    """Answers once it is let go; who holds up the event loop waits in vain."""

    def __init__(self, error: AsyncJobError | None = None) -> None:
        self.asked, self.go = threading.Event(), threading.Event()
        self._error = error

    def fetch(self, reference: ResultReference) -> Json:
        self.asked.set()
        assert self.go.wait(5.0), "nothing else ran while the store was read"
        if self._error:
            raise self._error
        return [reference.uri]


class AsyncFake:
    """The server in memory, in an event loop."""

    def __init__(self, api: FakeApi) -> None:
        self._api = api

    async def do(self, step: Step) -> Answer:
        return self._api.do(step)

    async def aclose(self) -> None: ...


def by_rest(store: SlowStore) -> AsyncShell:
    body = {"resultRef": REFERENCE, "result": None}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    return AsyncJobsClient("http://jobs.test", transport=transport, store=store)


def on_kubernetes(store: SlowStore) -> AsyncShell:
    api = FakeApi()
    api.put(stored("j", {"phase": "Succeeded", "resultRef": REFERENCE}))
    operations = KubernetesOperations(
        NAMESPACE, lambda: datetime(2026, 1, 1, tzinfo=UTC), lambda: "id", store=store
    )

    async def close() -> None: ...

    return AsyncShell(operations, lambda: AsyncFake(api), close)


CLIENTS = pytest.mark.parametrize("connect", [by_rest, on_kubernetes])


@CLIENTS
async def test_other_tasks_go_on_while_a_store_is_read(
    connect: Callable[[SlowStore], AsyncShell],
) -> None:
    store = SlowStore()
    async with connect(store) as client:
        fetching = asyncio.ensure_future(client.result("j"))
        assert await asyncio.to_thread(store.asked.wait, 5.0)
        store.go.set()
        assert await fetching == ["s3://bucket/key"]


@CLIENTS
async def test_what_a_store_raises_reaches_the_caller(
    connect: Callable[[SlowStore], AsyncShell],
) -> None:
    store = SlowStore(AsyncJobError("gone"))
    store.go.set()
    async with connect(store) as client:
        with pytest.raises(AsyncJobError, match="gone"):
            await client.result("j")


def test_plain_code_reads_the_store_where_it_stands() -> None:
    store = SlowStore()
    store.go.set()
    body = {"resultRef": REFERENCE, "result": None}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    with JobsClient("http://jobs.test", transport=transport, store=store) as client:
        assert client.result("j") == ["s3://bucket/key"]
