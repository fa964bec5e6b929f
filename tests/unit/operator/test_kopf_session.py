"""What kopf is given to read, over a real connection."""

import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from asyncjob_operator.kube.kopf_session import ReadableResponse

LEVELS = 1100
DEEP = '{"f:a":' * LEVELS + "{}" + "}" * LEVELS
FIELDS = f'[{{"manager": "other", "fieldsV1": {DEEP}}}]'
OBJECT = (
    f'{{"metadata": {{"name": "deep", "managedFields": {FIELDS}}}, "spec": {{"paused": true}}}}'
)
KEPT = {"metadata": {"name": "deep"}, "spec": {"paused": True}}


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """Return a session to a server that answers with what kopf cannot parse."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.Response(text=f'{{"kind": "QueueList", "items": [{OBJECT}]}}')
        response = web.StreamResponse()
        await response.prepare(request)
        line = f'{{"type": "ADDED", "object": {OBJECT}}}\n'.encode()
        for part in (line[:100], line[100:] + line, b'{"type": "BOOKMARK"}\n'):
            await response.write(part)
        return response

    app = web.Application()
    app.add_routes([web.get("/queues", answer)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    async with aiohttp.ClientSession(
        f"http://127.0.0.1:{port}", response_class=ReadableResponse
    ) as made:
        yield made
    await runner.cleanup()


async def test_a_list_has_nothing_that_is_too_deep(session: aiohttp.ClientSession) -> None:
    async with session.get("/queues") as response:
        assert await response.json() == {"kind": "QueueList", "items": [KEPT]}


async def test_a_watch_has_nothing_that_is_too_deep(session: aiohttp.ClientSession) -> None:
    async with session.get("/queues?watch=true") as response:
        lines = b"".join([chunk async for chunk in response.content.iter_chunked(64)])
    events = [json.loads(line) for line in lines.splitlines()]
    assert events == [
        {"type": "ADDED", "object": KEPT},
        {"type": "ADDED", "object": KEPT},
        {"type": "BOOKMARK"},
    ]
