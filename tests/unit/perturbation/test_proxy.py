"""The proxy hands requests and watches on as they are, and does to one of them what it is told."""

import asyncio
import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from asyncjob_perturbation.calls import Call
from asyncjob_perturbation.interferences import KillAt, LoseAnswer, WithholdFrom
from asyncjob_perturbation.plan import When
from asyncjob_perturbation.proxy import Proxy

JOBS = "/apis/asyncjob.dev/v1alpha1/namespaces/a/asyncjobs"
EVENT = b'{"type":"ADDED","object":{"metadata":{"name":"job","uid":"1"},"status":{}}}\n'


class Upstream:
    """Notes what arrives."""

    def __init__(self) -> None:
        self.arrived: list[tuple[str, str, bytes]] = []
        self.asked = asyncio.Event()
        self.changed = asyncio.Event()
        """What a watch waits for; set at first."""

        self.changed.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        kind = request.headers.get("Content-Type", "")
        self.arrived.append((request.method, f"{request.rel_url} {kind}".strip(), body))
        if "watch" not in request.query:
            return web.json_response({"seen": request.headers["Authorization"]}, status=201)
        stream = web.StreamResponse()
        await stream.prepare(request)
        self.asked.set()
        await self.changed.wait()
        await stream.write(EVENT)
        return stream


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture
async def proxy(upstream: Upstream) -> AsyncIterator[Proxy]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", upstream.answer)
    async with (
        TestServer(app) as server,
        Proxy(str(server.make_url("")).rstrip("/"), ssl.create_default_context()) as made,
    ):
        yield made


async def send(
    proxy: Proxy, method: str, path: str, body: bytes | None = None
) -> tuple[int, bytes]:
    headers = {"Authorization": "Bearer token"} | ({"Content-Type": "x/y"} if body else {})
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, proxy.url + path, data=body, headers=headers) as answer,
    ):
        return answer.status, await answer.read()


async def test_requests_arrive_as_they_were_sent_and_are_recorded(
    proxy: Proxy, upstream: Upstream
) -> None:
    sent = await send(proxy, "PATCH", f"{JOBS}/job/status?fieldManager=x%2Fy", b"{}")
    assert sent == (201, b'{"seen": "Bearer token"}')
    await send(proxy, "GET", JOBS)
    assert upstream.arrived == [
        ("PATCH", f"{JOBS}/job/status?fieldManager=x/y x/y", b"{}"),
        ("GET", JOBS, b""),
    ]
    assert proxy.recording.calls == [
        Call("PATCH asyncjobs/job/status", 1),
        Call("LIST asyncjobs", 1),
    ]
    assert not proxy.recording.past
    await send(proxy, "GET", f"{JOBS}?resourceVersion=0")
    assert proxy.recording.past == [Call("LIST asyncjobs", 2)]


async def test_a_request_before_which_the_part_dies_never_arrives(
    proxy: Proxy, upstream: Upstream
) -> None:
    kills: list[int] = []
    proxy.interference = KillAt(Call("LIST asyncjobs", 1), When.BEFORE, lambda: kills.append(1))
    assert (await send(proxy, "GET", JOBS))[0] == 502
    assert not upstream.arrived
    assert (await send(proxy, "GET", JOBS))[0] == 201
    assert kills == [1]


async def test_an_answer_that_is_lost_was_given(proxy: Proxy, upstream: Upstream) -> None:
    proxy.interference = LoseAnswer(Call("POST asyncjobs", 1))
    with pytest.raises(aiohttp.ClientError):
        await send(proxy, "POST", JOBS, b"{}")
    assert [method for method, *_ in upstream.arrived] == ["POST"]
    assert (await send(proxy, "POST", JOBS, b"{}"))[0] == 201


async def test_a_part_that_is_moved_loses_its_watches_and_asks_elsewhere(
    proxy: Proxy, upstream: Upstream
) -> None:
    upstream.changed.clear()
    watching = asyncio.ensure_future(send(proxy, "GET", f"{JOBS}?watch=1"))
    await upstream.asked.wait()
    other = Upstream()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", other.answer)
    async with TestServer(app) as server:
        while not proxy._watches:  # noqa: ASYNC110  # its answer is on the way
            await asyncio.sleep(0)
        proxy.move(str(server.make_url("")).rstrip("/"))
        with pytest.raises(aiohttp.ClientError):
            await watching
        assert await send(proxy, "GET", f"{JOBS}?watch=1") == (200, EVENT)
    assert len(upstream.arrived) == len(other.arrived) == 1


async def test_a_watch_is_handed_on_and_its_events_are_recorded(proxy: Proxy) -> None:
    assert await send(proxy, "GET", f"{JOBS}?watch=1") == (200, EVENT)
    assert proxy.recording.events == [Call("EVENT asyncjobs/job ADDED", 1)]


async def test_an_event_may_be_withheld(proxy: Proxy) -> None:
    proxy.interference = WithholdFrom(Call("EVENT asyncjobs/job ADDED", 1), When.GAP)
    _, shown = await send(proxy, "GET", f"{JOBS}?watch=1")
    assert b'"code":410' in shown


async def test_what_came_before_the_scenario_does_not_count(proxy: Proxy) -> None:
    await send(proxy, "GET", JOBS)
    proxy.begin()
    await send(proxy, "GET", JOBS)
    assert proxy.recording.calls == [Call("LIST asyncjobs", 1)]


async def test_the_start_of_a_part_is_left_alone(proxy: Proxy) -> None:
    proxy.interference = LoseAnswer(Call("POST asyncjobs", 1))
    proxy.begin_later()
    assert (await send(proxy, "POST", JOBS, b"{}"))[0] == 201
    proxy.begin()
    with pytest.raises(aiohttp.ClientError):
        await send(proxy, "POST", JOBS, b"{}")


async def test_an_event_of_a_watch_that_was_open_before_may_be_withheld(
    proxy: Proxy, upstream: Upstream
) -> None:
    upstream.changed.clear()
    proxy.interference = WithholdFrom(Call("EVENT asyncjobs/job ADDED", 1), When.GAP)
    proxy.begin_later()
    watching = asyncio.ensure_future(send(proxy, "GET", f"{JOBS}?watch=1"))
    await upstream.asked.wait()
    proxy.begin()
    upstream.changed.set()
    assert b'"code":410' in (await watching)[1]
