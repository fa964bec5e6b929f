"""Whom the gateway waits for, for how long, and who goes where there are too many."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from structlog.testing import capture_logs

from asyncjob_gateway.limits.connections import (
    ConnectionLimits,
    ConnectionState,
    ConnectionTable,
    protocol_class,
)
from unit.gateway.conftest import Clock


class Peer:
    def __init__(self) -> None:
        self.gone = False

    def abort(self) -> None:
        self.gone = True


def register(clock: Clock, most: int = 3) -> ConnectionTable:
    return ConnectionTable(ConnectionLimits(most, head_timeout=10, write_timeout=30), clock)


@pytest.mark.parametrize(
    ("awaited", "seconds"),
    [
        (ConnectionState.READING_HEAD, 10),
        (ConnectionState.WRITING, 30),
        (ConnectionState.IDLE, None),
        (ConnectionState.PROCESSING, None),
    ],
)
def test_each_is_waited_for_as_long_as_is_its_due(
    clock: Clock, awaited: ConnectionState, seconds: int | None
) -> None:
    known, peer = register(clock), Peer()
    known.add(peer)
    clock.now += 5
    known.set_state(peer, awaited)
    clock.now += (seconds or 1000) - (5 if awaited is ConnectionState.READING_HEAD else 0) - 0.1
    known.set_state(peer, awaited)  # no news: its time goes on
    known.close_overdue()
    assert not peer.gone
    clock.now += 0.1
    known.close_overdue()
    assert peer.gone is (seconds is not None)


def test_a_newcomer_takes_the_place_of_whoever_is_waited_for_longest(clock: Clock) -> None:
    known = register(clock, most=4)
    served, kept_alive, stuck, half = Peer(), Peer(), Peer(), Peer()
    for peer, awaited in (
        (served, ConnectionState.PROCESSING),
        (kept_alive, ConnectionState.IDLE),
        (stuck, ConnectionState.WRITING),
        (half, ConnectionState.READING_HEAD),
    ):
        known.add(peer)
        known.set_state(peer, awaited)
    for gone in (half, stuck, kept_alive):
        newcomer = Peer()
        known.add(newcomer)
        assert (gone.gone, newcomer.gone) == (True, False)
        known.set_state(newcomer, ConnectionState.PROCESSING)
    last = Peer()
    known.add(last)
    assert (last.gone, served.gone, len(known)) == (True, False, 4)


def test_one_that_is_gone_is_not_heard_of_again(clock: Clock) -> None:
    known, peer = register(clock), Peer()
    known.add(peer)
    known.remove(peer)
    known.set_state(peer, ConnectionState.IDLE)
    assert len(known) == 0


@asynccontextmanager
async def served(app: ASGIApp, connections: ConnectionTable) -> AsyncIterator[int]:
    """Serve an app with our protocol; yields the port."""
    made = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, http=protocol_class(connections), log_config=None, lifespan="off", ws="none"
    )
    server = uvicorn.Server(config)
    sweeping = asyncio.create_task(connections.run())
    serving = asyncio.create_task(server._serve([made]))
    try:
        yield made.getsockname()[1]
    finally:
        server.should_exit = True
        await serving
        sweeping.cancel()


@pytest.mark.parametrize("more", [b"", b"G"], ids=["silent", "another request begun"])
async def test_who_takes_nothing_of_a_stream_is_hung_up_on_and_no_fault_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, more: bytes
) -> None:
    ended, stuck = asyncio.Event(), asyncio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        watching = asyncio.ensure_future(receive())
        while not (watching.done() and watching.result()["type"] == "http.disconnect"):
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            if watching.done() and watching.result()["type"] != "http.disconnect":
                watching = asyncio.ensure_future(receive())
            await asyncio.sleep(0)
        ended.set()

    loop = asyncio.get_running_loop()
    known = ConnectionTable(ConnectionLimits(10, head_timeout=5, write_timeout=0.6), loop.time)
    told = known.set_state

    def noted(peer: Peer, awaited: ConnectionState) -> None:
        told(peer, awaited)
        if awaited is ConnectionState.WRITING:
            stuck.set()

    monkeypatch.setattr(known, "set_state", noted)
    with capture_logs() as logs:
        async with served(endless, known) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await asyncio.wait_for(stuck.wait(), 20)
            writer.write(more)
            await asyncio.wait_for(ended.wait(), 20)
            writer.close()
    assert {"event": "hung up", "why": "nothing came of it (taking)", "log_level": "debug"} in logs
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []
