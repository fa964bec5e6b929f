"""Results of the items of an array, read by both clients from the store that they were given."""

import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from asyncjob.client import AsyncJobsClient, JobsClient
from asyncjob.client.async_client import AsyncClient
from asyncjob.client.errors import ItemResultsError, NoResultError, ResultElsewhereError
from asyncjob.client.results import ResultFetcher, StoredResults
from asyncjob.json_types import Json
from asyncjob.lifecycle.arrays.item_results import (
    ItemResult,
    object_path,
    result_line,
)
from asyncjob.names import array_path
from asyncjob.offload import Address, AddressError, AllowList, Store
from asyncjob.rest.arrays import array_of
from support.in_memory.fake_api import NAMESPACE, FakeApi, client_of
from support.objects import builders

DONE: dict[str, Any] = {
    "phase": "Running",
    "total": 1000,
    "next": 900,
    "succeeded": 889,
    "failed": 1,
    "failedItems": "3",
    "open": [{"name": "c", "items": "4-8", "generation": 3}],
    "requeued": "9-11",
    "suspects": ["12"],
}


def an_array(uri: str | None, **status: Any) -> dict[str, Any]:
    obj = builders.array("thumbs", **({"results": {"uri": uri}} if uri else {}))
    obj["metadata"] |= {
        "namespace": NAMESPACE,
        "uid": "u1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "resourceVersion": "1",
    }
    obj["status"] = {**DONE, **status}
    return obj


def by_rest(obj: dict[str, Any], store: ResultFetcher | None) -> AsyncClient:
    return AsyncJobsClient("http://jobs.test", transport=answering(obj), store=store)


def answering(obj: dict[str, Any]) -> httpx.MockTransport:
    body = array_of(obj, detailed=True).model_dump(mode="json", by_alias=True)
    return httpx.MockTransport(lambda _: httpx.Response(200, json=body))


def on_kubernetes(obj: dict[str, Any], store: ResultFetcher | None) -> AsyncClient:
    api = FakeApi()
    api.objects.put(array_path(NAMESPACE, "thumbs"), obj)
    return client_of(api, store=store)


Connect = Callable[[dict[str, Any], ResultFetcher | None], AsyncClient]
CLIENTS = pytest.mark.parametrize("connect", [by_rest, on_kubernetes])


class Results:
    """A local store with results of an array."""

    def __init__(self, folder: Path) -> None:
        self.root = Address.folder(f"file://{folder}")
        self.uri = f"{self.root.join('results', NAMESPACE)}"
        self.store = Store()
        self.reader = StoredResults(AllowList((self.root.join("results"),)), self.store)

    def put(self, items: range, generation: int = 1) -> None:
        folder, name = object_path(generation, 0, 1, "j", 0)
        data = b"".join(result_line(item, b'{"n":%d}' % item) for item in items)
        address = self.root.join("results", NAMESPACE, "u1", folder, name)
        self.store.write(address, data, self.root)


@pytest.fixture
def stored(tmp_path: Path) -> Results:
    return Results(tmp_path)


async def all_of(found: AsyncIterator[ItemResult]) -> list[tuple[int, Json]]:
    return [(one.item, one.result) async for one in found]


EXPECTED = [(item, {"n": item}) for item in (0, 1, 2, *range(13, 900))]
"""Not those that have failed, are open, requeued or suspects, nor those that were never run."""


@CLIENTS
async def test_results_of_the_items_that_are_done_come_in_their_order(
    connect: Connect, stored: Results
) -> None:
    stored.put(range(500, 950), generation=1)
    stored.put(range(500), generation=2001)
    async with connect(an_array(stored.uri), stored.reader) as client:
        assert await all_of(client.item_results("thumbs")) == EXPECTED


def test_plain_code_reads_them_where_it_stands(
    stored: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.put(range(900))
    threads = set[threading.Thread]()
    names = Store.names

    def note(self: Store, address: Address, roots: Any) -> list[str]:
        threads.add(threading.current_thread())
        return names(self, address, roots)

    monkeypatch.setattr(Store, "names", note)
    transport = answering(an_array(stored.uri))
    with JobsClient("http://jobs.test", transport=transport, store=stored.reader) as client:
        found = [(one.item, one.result) for one in client.item_results("thumbs")]
    assert found == EXPECTED
    assert threads == {threading.current_thread()}


@CLIENTS
async def test_what_is_missing_is_named_once_all_others_were_given(
    connect: Connect, stored: Results
) -> None:
    stored.put(range(890))
    found = list[int]()

    async def read(client: AsyncClient) -> None:
        async for one in client.item_results("thumbs"):
            found.append(one.item)  # kept although the iterator raises

    async with connect(an_array(stored.uri), stored.reader) as client:
        with pytest.raises(ItemResultsError, match="no result of 10 items that are done: 890-899"):
            await read(client)
    assert found == [item for item, _ in EXPECTED if item < 890]


async def test_one_that_is_missing_is_said_as_one(stored: Results) -> None:
    stored.put(range(899))
    async with by_rest(an_array(stored.uri), stored.reader) as client:
        with pytest.raises(ItemResultsError, match="no result of 1 item that is done: 899;"):
            await all_of(client.item_results("thumbs"))


async def test_skipped_items_have_no_result_here(stored: Results) -> None:
    stored.put(range(100, 900))
    obj = an_array(stored.uri)
    obj["spec"]["items"]["skip"] = "0-99"
    async with by_rest(obj, stored.reader) as client:
        assert await all_of(client.item_results("thumbs")) == [
            (item, {"n": item}) for item in range(100, 900)
        ]


async def test_failed_items_that_are_only_counted_have_no_result(stored: Results) -> None:
    stored.put(range(890))
    async with by_rest(an_array(stored.uri, failedUnlisted=10), stored.reader) as client:
        assert len(await all_of(client.item_results("thumbs"))) == len(EXPECTED) - 10


@CLIENTS
async def test_an_array_without_results_and_a_client_without_a_store_say_so(
    connect: Connect, stored: Results
) -> None:
    async with connect(an_array(None), stored.reader) as client:
        with pytest.raises(NoResultError, match="thumbs keeps no results: it has no spec"):
            await all_of(client.item_results("thumbs"))
    async with connect(an_array(stored.uri), None) as client:
        with pytest.raises(ResultElsewhereError, match=f"are in {stored.uri}/u1") as error:
            await all_of(client.item_results("thumbs"))
        assert error.value.uri == f"{stored.uri}/u1"


async def test_a_folder_that_may_not_be_read_is_not(stored: Results) -> None:
    other = StoredResults(AllowList((stored.root.join("other"),)), stored.store)
    async with by_rest(an_array(stored.uri), other) as client:
        with pytest.raises(AddressError, match="not below what may be read"):
            await all_of(client.item_results("thumbs"))


def test_an_array_says_where_its_results_are() -> None:
    assert array_of(an_array("s3://b/results/ns/")).results == "s3://b/results/ns/u1"
    assert array_of(an_array(None)).results is None
