"""Results that lie in a store: fetched without holding up the caller's event loop."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from asyncjob.client import AsyncJobsClient, JobsClient
from asyncjob.client.async_client import AsyncClient
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import Json
from asyncjob.models.job_status import ResultReference
from support.builders import stored
from support.fake_api import FakeApi, client_of

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


def by_rest(store: SlowStore) -> AsyncClient:
    body = {"resultRef": REFERENCE, "result": None}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    return AsyncJobsClient("http://jobs.test", transport=transport, store=store)


def on_kubernetes(store: SlowStore) -> AsyncClient:
    api = FakeApi()
    api.put(stored("j", {"phase": "Succeeded", "resultRef": REFERENCE}))
    return client_of(api, store=store)


CLIENTS = pytest.mark.parametrize("connect", [by_rest, on_kubernetes])


@CLIENTS
async def test_other_tasks_go_on_while_a_store_is_read(
    connect: Callable[[SlowStore], AsyncClient],
) -> None:
    store = SlowStore()
    async with connect(store) as client:
        fetching = asyncio.ensure_future(client.result("j"))
        assert await asyncio.to_thread(store.asked.wait, 5.0)
        store.go.set()
        assert await fetching == ["s3://bucket/key"]


@CLIENTS
async def test_what_a_store_raises_reaches_the_caller(
    connect: Callable[[SlowStore], AsyncClient],
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
