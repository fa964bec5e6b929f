"""Watches: lines of any size, errors, and going on afterwards."""

import asyncio
import json
import socket
import time
from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web

from asyncjob.errors import (
    ApiError,
    ExpiredError,
    ForbiddenError,
    UnauthorizedError,
    UnknownOutcomeError,
)
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession, WatchEvent, watch
from asyncjob.kube import watch as watch_function
from asyncjob.kube.informer import MAX_WATCH_FAILURES, WatchObserver, run_informer
from asyncjob.kube.pacing import HEALTHY_ROUND_SECONDS, ExponentialBackoff, RoundPacer
from asyncjob.kube.transport import keepalive_socket
from support.loopback.kube_answers import Server, error, event, hang_up, ok, stream

watch_module = __import__(watch_function.__module__, fromlist=["MAX_SILENCE_SECONDS"])
GONE: JsonObject = {
    "type": "ERROR",
    "object": {"code": 410, "reason": "Expired", "message": "too old"},
}


async def events(session: KubeSession, **options: Any) -> list[WatchEvent]:
    return [item async for item in watch(session, "/x", **options)]


async def test_events_come_in_order_until_the_server_ends_the_watch(
    server: Server, session: KubeSession
) -> None:
    server.answers = [stream(event("ADDED", "1"), event("BOOKMARK", "2"))]
    found = await events(session)
    assert [(item.type, item.resource_version) for item in found] == [
        ("ADDED", "1"),
        ("BOOKMARK", "2"),
    ]
    query = server.requests[0].query
    assert (query["watch"], query["allowWatchBookmarks"]) == ("true", "true")


async def test_a_table_is_asked_for_without_objects(server: Server, session: KubeSession) -> None:
    server.answers = [stream()]
    await events(session, table=True)
    (request,) = server.requests
    assert "as=Table" in request.headers["Accept"]
    assert request.query["includeObject"] == "None"


async def test_a_table_comes_without_bookmarks_where_the_server_has_none_for_tables(
    server: Server, session: KubeSession
) -> None:
    server.answers = [error(406, "NotAcceptable"), stream(event("ADDED", "1"))]
    assert [item.type for item in await events(session, table=True)] == ["ADDED"]
    asked = [request.query.get("allowWatchBookmarks") for request in server.requests]
    assert asked == ["true", None]


async def test_no_other_refusal_and_no_other_watch_is_tried_without_bookmarks(
    server: Server, session: KubeSession
) -> None:
    for code, table in ((406, False), (403, True)):
        server.answers = [error(code)]
        with pytest.raises(ApiError):
            await events(session, table=table)
    assert len(server.requests) == 2


async def test_lines_may_come_in_pieces_and_be_huge(server: Server, session: KubeSession) -> None:
    huge = event("ADDED", "1", note="x" * 3_000_000)
    whole = stream(huge, b'{"type":"ADD', b'ED","object":{}}\n\n{"type":"DELETED","object":{}}\n')
    server.answers = [whole]
    assert [item.type for item in await events(session)] == ["ADDED", "ADDED", "DELETED"]


async def test_an_error_event_is_raised_as_its_type(server: Server, session: KubeSession) -> None:
    server.answers = [stream(event("ADDED", "1"), GONE)]
    with pytest.raises(ExpiredError, match="too old"):
        await events(session)


@pytest.mark.parametrize(("code", "kind"), [(403, ForbiddenError), (401, UnauthorizedError)])
async def test_a_refused_watch_is_raised_as_its_type(
    server: Server, session: KubeSession, code: int, kind: type[ApiError]
) -> None:
    server.answers = [error(code)]
    with pytest.raises(kind):
        await events(session)


async def test_a_broken_stream_says_so(server: Server, session: KubeSession) -> None:
    server.answers = [stream(event("ADDED", "1"), broken=True)]
    with pytest.raises(UnknownOutcomeError):
        await events(session)


async def test_a_line_that_is_not_json_is_a_broken_stream(
    server: Server, session: KubeSession
) -> None:
    server.answers = [stream(b"<html>proxy</html>\n")]
    with pytest.raises(UnknownOutcomeError, match="invalid JSON in watch"):
        await events(session)


async def test_a_half_line_at_the_end_is_no_event(server: Server, session: KubeSession) -> None:
    server.answers = [stream(event("ADDED", "1"), b'{"type":"ADD')]
    assert len(await events(session)) == 1


async def test_a_silent_stream_is_a_dead_one(
    server: Server, session: KubeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await release.wait()
        return response

    monkeypatch.setattr(watch_module, "MAX_SILENCE_SECONDS", 0.05)
    server.answers = [silent]
    with pytest.raises(UnknownOutcomeError, match=r"broke off: nothing came for 0\.05 s"):
        await events(session)
    release.set()


class Follower(WatchObserver):
    """Notes what it sees and ends the test after so many steps."""

    def __init__(self, steps: int) -> None:
        self.seen: list[str] = []
        self.done = asyncio.Event()
        self.watches = 0
        self._steps = steps

    def watch_opened(self) -> None:
        self.watches += 1

    def replace(self, objects: Sequence[JsonObject]) -> None:
        self._note(f"list of {len(objects)}")

    def apply(self, change: WatchEvent) -> None:
        self._note(f"{change.type} {change.resource_version}")

    def _note(self, words: str) -> None:
        self.seen.append(words)
        if len(self.seen) == self._steps:
            self.done.set()


async def follow_until(
    session: KubeSession, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> list[float]:
    """Follow without waiting; returns how long it would have waited."""
    waits: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr("asyncjob.kube.informer.asyncio.sleep", note)
    task = asyncio.ensure_future(run_informer(session, "/x", follower, observer=follower))
    await follower.done.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return waits


LIST = ok({"metadata": {"resourceVersion": "5"}, "items": [{}, {}]})


async def test_a_collection_is_listed_then_watched_from_there_on(
    server: Server, session: KubeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = stream(event("ADDED", "6"), event("BOOKMARK", "7"))
    server.answers = [LIST, first, stream(event("MODIFIED", "8"))]
    follower = Follower(3)
    await follow_until(session, follower, monkeypatch)
    assert follower.seen == ["list of 2", "ADDED 6", "MODIFIED 8"]
    assert follower.watches >= 2
    assert [request.query.get("resourceVersion") for request in server.requests[:3]] == [
        None,
        "5",
        "7",
    ]


async def test_a_version_that_is_too_old_leads_to_a_new_list(
    server: Server, session: KubeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers = [LIST, stream(GONE), LIST, stream()]
    follower = Follower(2)
    await follow_until(session, follower, monkeypatch)
    assert follower.seen == ["list of 2", "list of 2"]


async def test_a_server_that_ends_every_watch_at_once_is_not_asked_without_a_pause(
    server: Server, session: KubeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers = [LIST, stream(), stream(), stream(), stream(event("ADDED", "6")), stream()]
    waits = await follow_until(session, Follower(2), monkeypatch)
    assert len(waits) >= 3
    assert all(wait > 0 for wait in waits)
    assert waits[2] > waits[0]


async def test_a_follower_outlasts_outages(
    server: Server, session: KubeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers = [error(503), error(403), LIST, stream()]
    follower = Follower(1)
    await follow_until(session, follower, monkeypatch)
    assert follower.seen == ["list of 2"]


async def test_a_watch_that_broke_off_goes_on_where_it_was_without_a_new_list(
    server: Server, session: KubeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = stream(event("ADDED", "6"), broken=True)
    server.answers = [LIST, cut, error(503), hang_up, stream(event("ADDED", "7")), stream()]
    follower = Follower(3)
    await follow_until(session, follower, monkeypatch)
    assert follower.seen == ["list of 2", "ADDED 6", "ADDED 7"]
    versions = [request.query.get("resourceVersion") for request in server.requests[1:5]]
    assert versions == ["5", "6", "6", "6"]


async def test_a_version_at_which_every_watch_fails_is_given_up_in_the_end(
    server: Server, session: KubeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [error(504, "Timeout", "Too large resource version")] * MAX_WATCH_FAILURES
    server.answers = [LIST, *failures, LIST, stream()]
    follower = Follower(2)
    await follow_until(session, follower, monkeypatch)
    assert follower.seen == ["list of 2", "list of 2"]


def test_a_round_that_lasted_is_followed_by_the_next_at_once() -> None:
    times = iter([0.0, 0.0, HEALTHY_ROUND_SECONDS, 10.0, 10.0, 20.0, 20.0 + HEALTHY_ROUND_SECONDS])
    pace = RoundPacer(lambda: next(times), ExponentialBackoff(initial=1.0, cap=60.0))
    pace.start_round()
    assert pace.next_delay() == 0.0
    pace.start_round()
    assert pace.next_delay() > 0.0
    pace.start_round()
    assert 0.5 <= pace.next_delay(ApiError("away")) <= 1.0


def test_pauses_double_up_to_a_cap_and_begin_again_after_success() -> None:
    backoff = ExponentialBackoff(initial=1.0, cap=8.0)
    pauses = [backoff.next_delay() for _ in range(6)]
    for pause, most in zip(pauses, [1, 2, 4, 8, 8, 8], strict=True):
        assert most / 2 <= pause <= most
    backoff.reset()
    assert backoff.next_delay() <= 1.0


def test_sockets_notice_a_peer_that_is_gone() -> None:
    address = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ())
    with keepalive_socket(address) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


async def test_a_large_collection_is_read_in_pages_and_cut_down_as_it_comes(
    server: Server, session: KubeSession
) -> None:
    first: dict[str, Any] = {
        "metadata": {"resourceVersion": "5", "continue": "more"},
        "items": [{"a": 1, "b": 1}],
    }
    second: dict[str, Any] = {"metadata": {"resourceVersion": "5"}, "items": [{"a": 2, "b": 2}]}
    changed: dict[str, Any] = {
        "type": "ADDED",
        "object": {"a": 3, "b": 3, "metadata": {"resourceVersion": "6"}},
    }
    server.answers = [ok(first), ok(second), stream(changed)]
    taken: list[object] = []
    enough = asyncio.Event()

    class Taker:
        def replace(self, objects: Sequence[JsonObject]) -> None:
            taken.append(list(objects))

        def apply(self, change: WatchEvent) -> None:
            taken.append(change.object)
            enough.set()

    class Versions(WatchObserver):
        def listed(self, version: str) -> None:
            taken.append(f"at {version}")

    task = asyncio.ensure_future(
        run_informer(
            session,
            "/x",
            Taker(),
            observer=Versions(),
            transform=lambda obj: {"a": obj["a"]},
        )
    )
    await enough.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert taken == ["at 5", [{"a": 1}, {"a": 2}], {"a": 3}]
    pages = [request.query for request in server.requests[:2]]
    assert [(page.get("limit"), page.get("continue")) for page in pages] == [
        ("20", None),
        ("160", "more"),
    ]


async def test_in_a_flood_of_events_others_have_their_turn(
    server: Server, session: KubeSession
) -> None:
    line = json.dumps(event("ADDED", "1")).encode() + b"\n"
    server.answers = [stream(line * 500)]
    taken, turns = 0, set[int]()

    async def other() -> None:
        while True:
            turns.add(taken)
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    async for _ in watch(session, "/x"):
        taken += 1
        busy_until = time.thread_time() + 0.001
        while time.thread_time() < busy_until:
            pass
    beside.cancel()
    assert taken == 500
    assert len(turns) >= 5  # of half a second: at least every 100 ms


async def test_events_that_come_in_quick_succession_can_be_read_together(
    server: Server, session: KubeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first comes at once; the others are sent one by one after it has come."""
    first_came, chunks = asyncio.Event(), 0
    read_chunk = watch_module._read_chunk

    async def counted(response: Any) -> bytes:
        nonlocal chunks
        chunks += 1
        data: bytes = await read_chunk(response)
        return data

    async def one_by_one(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for version in range(6):
            await response.write(json.dumps(event("ADDED", str(version))).encode() + b"\n")
            await first_came.wait()
            await asyncio.sleep(0.005)
        return response

    monkeypatch.setattr(watch_module, "_read_chunk", counted)
    server.answers = [one_by_one]
    versions = []
    async for item in watch(session, "/x", gather_seconds=1.0):
        first_came.set()
        versions.append(item.resource_version)
    assert versions == [str(version) for version in range(6)]
    assert chunks == 3, "the first event, all others, the end"
