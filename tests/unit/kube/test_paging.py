"""Lists of whole objects: pages are bounded in bytes, and nobody else has to wait for them."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from asyncjob.errors import UnknownOutcomeError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import TIME_SLICE_SECONDS, TimeSlice
from asyncjob.kube.paging import (
    FIRST_PAGE_OBJECTS,
    MAX_PAGE_BYTES,
    MAX_PAGE_OBJECTS,
    TARGET_PAGE_BYTES,
    ListPager,
    PageTooLargeError,
)
from asyncjob.kube.session import METADATA_LIST_TYPE
from support.loopback.kube_answers import Server, error


class Collection:
    """Answers pages of a collection whose objects have sizes in bytes; notes how each was."""

    def __init__(self, *sizes: int) -> None:
        self.objects = [{"n": n, "pad": "x" * size} for n, size in enumerate(sizes)]
        self.limits: list[int] = []
        self.bytes: list[int] = []
        self.late: set[int] = set()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        limit, start = int(request.query["limit"]), int(request.query.get("continue", 0))
        self.limits.append(limit)
        if len(self.limits) in self.late:
            late: web.StreamResponse = await error(504, "Timeout")(request)
            return late
        more = {"continue": str(start + limit)} if start + limit < len(self.objects) else {}
        page = {"metadata": more, "items": self.objects[start : start + limit]}
        body = json.dumps(page).encode()
        self.bytes.append(len(body))
        return web.Response(body=body)


async def numbers(server: Server, session: KubeSession, collection: Any) -> list[Any]:
    server.answers = [collection]
    return [one["n"] async for one in session.list("/x")]


async def test_pages_of_small_objects_grow_to_the_most_there_may_be(
    server: Server, session: KubeSession
) -> None:
    small = Collection(*[1000] * 3000)
    assert await numbers(server, session, small) == list(range(3000))
    assert small.limits[:3] == [FIRST_PAGE_OBJECTS, 8 * FIRST_PAGE_OBJECTS, MAX_PAGE_OBJECTS]
    assert len(small.limits) == 8


async def test_pages_of_large_objects_stay_small(server: Server, session: KubeSession) -> None:
    large = Collection(*[200_000] * 180)
    assert await numbers(server, session, large) == list(range(180))
    halved = [FIRST_PAGE_OBJECTS, FIRST_PAGE_OBJECTS // 2, FIRST_PAGE_OBJECTS // 4]
    assert large.limits[:3] == halved  # nothing was known of them yet
    assert max(large.bytes[2:]) <= MAX_PAGE_BYTES
    assert max(large.bytes[3:]) <= TARGET_PAGE_BYTES
    assert len(large.limits) < 65


async def test_an_answer_that_becomes_too_large_is_asked_for_again_in_parts(
    server: Server, session: KubeSession
) -> None:
    mixed = Collection(*[100] * FIRST_PAGE_OBJECTS, *[1_000_000] * 40, *[100] * 1000)
    assert await numbers(server, session, mixed) == list(range(FIRST_PAGE_OBJECTS + 1040))
    assert max(mixed.bytes) > MAX_PAGE_BYTES  # the answer that was not read to its end


async def test_one_object_is_read_whatever_its_size(server: Server, session: KubeSession) -> None:
    huge = Collection(MAX_PAGE_BYTES * 2, 10, MAX_PAGE_BYTES * 2)
    assert await numbers(server, session, huge) == [0, 1, 2]


async def test_a_page_that_comes_too_late_is_asked_for_again_with_half_of_it(
    server: Server, session: KubeSession
) -> None:
    slow = Collection(*[1000] * 300)
    slow.late = {2, 3}
    assert await numbers(server, session, slow) == list(range(300))
    assert slow.limits[:4] == [
        FIRST_PAGE_OBJECTS,
        8 * FIRST_PAGE_OBJECTS,
        4 * FIRST_PAGE_OBJECTS,
        2 * FIRST_PAGE_OBJECTS,
    ]


async def test_a_server_that_answers_no_page_in_time_is_not_asked_for_ever(
    server: Server, session: KubeSession
) -> None:
    dead = Collection(1)
    dead.late = {1, 2, 3, 4}
    with pytest.raises(UnknownOutcomeError):
        await numbers(server, session, dead)
    assert dead.limits == [FIRST_PAGE_OBJECTS, FIRST_PAGE_OBJECTS // 2, FIRST_PAGE_OBJECTS // 4]


async def test_an_answer_without_a_list_is_not_taken_for_an_empty_one(
    server: Server, session: KubeSession
) -> None:
    async def proxy(_: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>welcome</html>")

    with pytest.raises(UnknownOutcomeError, match="not a list"):
        await numbers(server, session, proxy)


async def test_metadata_is_asked_for_by_what_is_accepted(
    server: Server, session: KubeSession
) -> None:
    server.answers = [Collection(1)]
    assert [page async for page in session.pages("/x", accept=METADATA_LIST_TYPE)]
    assert server.requests[0].headers["Accept"] == METADATA_LIST_TYPE


async def test_others_get_their_turn_in_the_midst_of_a_page(
    server: Server, session: KubeSession
) -> None:
    server.answers = [Collection(*[1] * FIRST_PAGE_OBJECTS)]
    turns, loop = 0, asyncio.get_running_loop()

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    during = []
    async for _ in session.list("/x"):
        before, until = turns, loop.time() + TIME_SLICE_SECONDS
        while loop.time() < until:  # what is done with each object takes its time
            pass
        during.append(before)
    counting.cancel()
    assert len(set(during)) == FIRST_PAGE_OBJECTS


async def test_a_turn_is_given_only_after_some_time() -> None:
    turns, seen = TimeSlice(), list[str]()
    asyncio.get_running_loop().call_soon(seen.append, "other")
    await turns.yield_if_due()
    assert seen == []
    turns._ends_at = 0.0
    await turns.yield_if_due()
    assert seen == ["other"]


def page(token: str = "more") -> JsonObject:
    return {"metadata": {"continue": token}}


def test_the_size_of_pages_follows_that_of_their_objects() -> None:
    state = ListPager()
    state.record_page(page(), FIRST_PAGE_OBJECTS, FIRST_PAGE_OBJECTS * 1_000_000)
    assert state.params == {"limit": "1", "continue": "more"}
    assert state.max_bytes is None
    state.record_page(page(), 1, 1000)
    assert state.params["limit"] == "8"
    assert state.max_bytes == MAX_PAGE_BYTES


def test_a_page_that_is_too_large_shrinks_until_it_is_a_single_object() -> None:
    state, limits = ListPager(), []
    while state.max_bytes is not None:
        assert state.shrink_after(PageTooLargeError())
        limits.append(int(state.params["limit"]))
    assert limits == [10, 5, 2, 1]


def test_only_a_late_answer_or_a_large_one_is_due_to_the_size_of_a_page() -> None:
    refused, late = UnknownOutcomeError(status=503), UnknownOutcomeError()
    late.__cause__ = TimeoutError()
    assert not ListPager().shrink_after(refused)
    assert ListPager().shrink_after(late)


def test_an_empty_page_in_the_midst_of_a_list_keeps_the_size() -> None:
    state = ListPager()
    state.record_page(page(), 0, 100)
    assert state.params["limit"] == str(FIRST_PAGE_OBJECTS)


def test_only_the_first_page_is_asked_for_by_the_version_of_the_list() -> None:
    state, asked = ListPager(), {"labelSelector": "a", "resourceVersion": "7"}
    asked["resourceVersionMatch"] = "Exact"
    first = state.request_params(asked.items())
    assert first == {**asked, "limit": str(FIRST_PAGE_OBJECTS)}
    state.record_page(page(), 0, 100)
    more = {"limit": str(FIRST_PAGE_OBJECTS), "continue": "more"}
    assert state.request_params(asked.items()) == {"labelSelector": "a", **more}


def test_a_list_begun_again_goes_on_from_nowhere() -> None:
    state = ListPager()
    state.record_page(page(), FIRST_PAGE_OBJECTS, 100)
    assert state.params["continue"] == "more"
    state.restart()
    assert "continue" not in state.params
