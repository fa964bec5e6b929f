"""The caller: what each answer of an API makes of the job; and the API that the example brings."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from aiohttp.typedefs import Handler
from examples.handlers.api_call import app
from examples.limited_api import PerSecond, build

from asyncjob.testing import FakeCluster, HandlerRun, Phase, run_handler

TYPE = "api.call"
CALL = {"path": "/orders", "body": {"product": "Mug"}}
DATE = "Thu, 01 Jan 2026 12:00:00 GMT"

Start = Callable[[web.Application], Any]


@pytest.fixture
async def session(
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Callable[[web.Application], Any]]:
    """Serve an API, and have the handler's own session talk to it."""
    servers: list[TestServer] = []

    async def serve(api: web.Application) -> TestServer:
        server = TestServer(api)
        servers.append(server)
        await server.start_server()
        monkeypatch.setenv("EXAMPLE_API", str(server.make_url("")))
        return server

    yield serve
    for server in servers:
        await server.close()


def answering(status: int, **headers: str) -> web.Application:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=status, text="no", headers=headers)

    api = web.Application()
    api.router.add_post("/orders", answer)
    return api


async def run_against(serve: Start, status: int, **headers: str) -> HandlerRun:
    await serve(answering(status, **headers))
    return await run_handler(app, TYPE, CALL)


async def test_an_answer_is_the_result(session: Start) -> None:
    await session(build(lambda: True))
    run = await run_handler(app, TYPE, CALL, raise_errors=True)
    assert run.result == {"status": 201, "body": {"order": 1}}


async def test_a_busy_api_is_called_again_when_it_says(session: Start) -> None:
    answers = iter([False, False, True])
    server = await session(build(lambda: next(answers)))
    async with FakeCluster(app, types=[TYPE]) as cluster:
        job = await cluster.submit(TYPE, CALL)
        await cluster.run_until(lambda: job.phase is Phase.SUCCEEDED)
        assert (job.phase, job.attempt, cluster.clock.elapsed) == (Phase.SUCCEEDED, 3, 2.0)
    async with aiohttp.ClientSession() as client, client.get(server.make_url("/orders")) as shown:
        assert await shown.json() == {job.uid: {"product": "Mug"}}


async def test_an_answer_that_got_lost_makes_no_second_order(session: Start) -> None:
    lost = iter([True, False])

    @web.middleware
    async def losing(request: web.Request, handler: Handler) -> web.StreamResponse:
        answer = await handler(request)
        return web.Response(status=502) if next(lost) else answer

    api = build(lambda: True)
    api.middlewares.append(losing)
    await session(api)
    async with FakeCluster(app, types=[TYPE]) as cluster:
        job = await cluster.submit(TYPE, CALL)
        await cluster.run_until_idle()
        assert (job.attempt, job.result) == (2, {"status": 201, "body": {"order": 1}})


@pytest.mark.parametrize(
    ("wanted", "after"),
    [
        ("7", 7),
        ("100000", 300),
        ("Thu, 01 Jan 2026 12:00:09 GMT", 9),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0),
        ("soon", 1),
        ("-1", 1),
    ],
    ids=["seconds", "long", "time", "past", "word", "negative"],
)
async def test_the_wait_is_what_the_api_asks_for(session: Start, wanted: str, after: float) -> None:
    run = await run_against(session, 429, Date=DATE, **{"Retry-After": wanted})
    assert (run.outcome.phase, run.outcome.retry_after) == (Phase.RETRYING, after)


@pytest.mark.parametrize(
    ("status", "phase", "category"),
    [
        (400, Phase.DEAD_LETTER, "Validation"),
        (401, Phase.DEAD_LETTER, "Permission"),
        (404, Phase.DEAD_LETTER, "Validation"),
        (500, Phase.RETRYING, "Network"),
        (429, Phase.RETRYING, "RateLimited"),
        (503, Phase.RETRYING, "Network"),
    ],
)
async def test_a_refusal_has_its_category(
    session: Start, status: int, phase: Phase, category: str
) -> None:
    run = await run_against(session, status)
    assert run.outcome.error is not None
    assert (run.outcome.phase, run.outcome.error.category) == (phase, category)
    assert f"the API answered {status}: no" in str(run.outcome.error.message)


async def test_an_api_that_is_away_is_called_again(session: Start) -> None:
    server = await session(answering(200))
    await server.close()
    run = await run_handler(app, TYPE, CALL)
    assert run.outcome.error is not None
    assert (run.outcome.phase, run.outcome.error.category) == (Phase.RETRYING, "Network")


@pytest.mark.parametrize("path", ["//elsewhere.example/orders", "/orders?all", "orders"])
async def test_a_job_does_not_choose_another_api(path: str) -> None:
    run = await run_handler(app, TYPE, {**CALL, "path": path})
    assert run.outcome.phase is Phase.DEAD_LETTER
    assert "path" in str(run.outcome.message)


def test_the_example_api_allows_so_many_within_any_second() -> None:
    times = iter([0.0, 0.9, 0.95, 1.0, 1.1, 2.0])
    allows = PerSecond(2, now=lambda: next(times))
    assert [allows() for _ in range(6)] == [True, True, False, True, False, True]
