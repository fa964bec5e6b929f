"""Results that lie in a store: fetched without holding up the caller's event loop."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from asyncjob.client import AsyncJobsClient, JobsClient
from asyncjob.client.async_client import AsyncClient
from asyncjob.client.results import StoredResults
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.item_results import ResultObjects
from asyncjob.models.job_status import ResultReference
from asyncjob.offload import Address, AddressError, AllowList, Store
from asyncjob.offload.transfer import result_reference
from support.in_memory.fake_api import FakeApi, client_of
from support.objects.builders import stored

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

    def folder(self, uri: str) -> ResultObjects:
        raise AssertionError(f"nobody asked for {uri}")


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


def test_a_client_reads_the_folders_of_a_store_that_it_was_given_and_no_others(
    tmp_path: Path,
) -> None:
    root = Address.folder(f"file://{tmp_path}")
    address, data = root.join("results", "j.json"), b'{"rows": 3}'
    Store().write(address, data, root)
    reference = result_reference(address, data).model_dump(by_alias=True)
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, json={"resultRef": reference, "result": None})
    )

    def read(folder: str) -> Json:
        store = StoredResults(AllowList((root.join(folder),)), Store())
        with JobsClient("http://jobs.test", transport=transport, store=store) as client:
            return client.result("j")

    assert read("results") == {"rows": 3}
    with pytest.raises(AddressError, match="not below what may be read"):
        read("other")
