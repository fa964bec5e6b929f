"""How kopf is held to watching, and what it is spared."""

import asyncio
import itertools
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import kopf
import pytest
from aiohttp import web
from aiohttp.test_utils import BaseTestServer, TestServer

import asyncjob_operator
from asyncjob.kube.paging import MAX_PAGE_BYTES
from asyncjob.names import CRON_JOBS, GROUP, JOBS, QUEUES, VERSION, collection_path
from asyncjob_operator import kopf_handlers
from asyncjob_operator.kopf_handlers import PEERING_IDENTITY
from asyncjob_operator.kube import kopf_session
from asyncjob_operator.kube.kopf_session import (
    EndlessBackoffs,
    KopfSession,
    WatchedCollection,
    watch_only,
)
from asyncjob_operator.kube.kopf_text import LIST_AGAIN
from asyncjob_operator.options import settings_from_environment
from asyncjob_operator.settings import JobWatchSource
from asyncjob_operator.supervision import supervise
from asyncjob_operator.telemetry.loop_health import LoopHealth
from support.parts.vitals import loop_health

SOURCES = Path(asyncjob_operator.__file__).parent


def test_kopf_never_runs_out_of_patience() -> None:
    backoffs = list(itertools.islice(EndlessBackoffs(), 1000))
    assert 0.5 <= backoffs[0] <= 1.0
    assert all(5.0 <= backoff <= 10.0 for backoff in backoffs[10:])
    assert len(set(backoffs[10:])) > 100  # by chance, so that not all come back at the same time
    assert not hasattr(EndlessBackoffs(), "__len__")


def test_kopf_posts_nothing_stores_nothing_and_joins_no_peers() -> None:
    chosen = kopf.OperatorSettings()
    watch_only(chosen)
    assert not chosen.posting.enabled
    assert chosen.peering.standalone
    assert chosen.scanning.disabled
    body: Any = {"metadata": {"annotations": {"a": "b"}}}
    storage, progress = chosen.persistence.diffbase_storage, chosen.persistence.progress_storage
    assert storage.fetch(body=body) is None
    assert progress.fetch(key=cast("Any", "k"), body=body) is None
    essence = kopf.BodyEssence()
    assert progress.clear(essence=essence) is essence
    assert chosen.queueing.worker_limit is None


def test_of_kopf_only_what_is_public_is_used() -> None:
    imports = re.compile(r"^\s*(from kopf[._]|import kopf\.)|kopf\._", re.MULTILINE)
    assert [file.name for file in SOURCES.rglob("*.py") if imports.search(file.read_text())] == []


def test_queues_schedules_and_arrays_have_one_handler_each_and_it_is_for_events() -> None:
    handlers = kopf.get_default_registry()
    assert {one.id for one in handlers._watching.get_all_handlers()} == {
        "queue",
        "cron-job",
        "array",
    }
    for other in (handlers._changing, handlers._spawning, handlers._indexing, handlers._webhooks):
        assert list(other.get_all_handlers()) == []


@pytest.mark.parametrize("name", ["queue", "cron_job", "job"])
async def test_a_handler_passes_the_event_on_and_returns_none(name: str) -> None:
    seen: list[tuple[str | None, str]] = []

    def take(kind: str | None, obj: Any) -> None:
        seen.append((kind, obj["metadata"]["name"]))

    operator = SimpleNamespace(**{f"on_{name}_event": take})
    handler = getattr(kopf_handlers, f"on_{name}")
    event = {"type": "ADDED", "object": {"metadata": {"name": "one"}}}
    memo = kopf.Memo(runtime=SimpleNamespace(operator=operator))
    assert await handler(event=event, memo=memo, name="one", patch=None) is None
    assert seen == [("ADDED", "one")]


async def test_the_probe_fails_with_a_loop_that_has_stopped() -> None:
    wrong = ["", "the loop 'requeue timer' has made no attempt for 61 s"]
    operator = SimpleNamespace(check_liveness=lambda: wrong.pop(0))
    memo = kopf.Memo(runtime=SimpleNamespace(operator=operator))
    check: Any = kopf_handlers.check_loops
    assert await check(memo=memo) == "ok"
    with pytest.raises(kopf.PermanentError, match="requeue timer"):
        await check(memo=memo)


def test_without_flags_the_options_are_those_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("asyncjob_operator.options.configure_operator_logs", lambda *_: None)
    monkeypatch.setenv("ASYNCJOB_OPERATOR_NAMESPACE", "one two")
    monkeypatch.setenv("ASYNCJOB_OPERATOR_RECOVERY", "false")
    monkeypatch.setenv("ASYNCJOB_OPERATOR_JOB_WATCH", "kopf")
    settings = settings_from_environment()
    assert settings.namespaces == ("one", "two")
    assert not settings.options.recovery
    assert settings.job_watch is JobWatchSource.KOPF


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


class Access:
    """Who signs: each reload makes a new token."""

    def __init__(self, host: str) -> None:
        self.host, self.namespace, self.proxy, self.server_hostname = host, "default", None, None
        self.ssl_context = False
        self.tokens = 1

    async def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens}"}

    async def reload(self) -> None:
        self.tokens += 1


class Server:
    """An API server on a socket that gives the answers it was told to, one after the other.

    kopf's session is aiohttp's own and needs a socket; the API server in memory stands behind the
    project's transport and has none. Nor would it give these answers: a token refused just once, a
    page beyond its limit, an object 5,000 levels deep, a version that has expired at once.
    """

    def __init__(self) -> None:
        self.answers: list[web.Response | bytes] = []
        self.limits: list[str] = []
        self.tokens: list[str] = []
        self.progress: list[WatchedCollection] = []
        self.relists: list[WatchedCollection] = []
        self.server: BaseTestServer | None = None
        self.session: KopfSession | None = None
        self.http: aiohttp.ClientSession | None = None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append(request.headers["Authorization"])
        self.limits.append(request.query.get("limit", ""))
        answer = self.answers.pop(0)
        if isinstance(answer, web.Response):
            return answer
        stream = web.StreamResponse()
        await stream.prepare(request)
        await stream.write(answer)
        await asyncio.Event().wait()
        return stream

    def on_watch_progress(self, watched: WatchedCollection) -> None:
        self.progress.append(watched)

    def on_relist(self, watched: WatchedCollection) -> None:
        self.relists.append(watched)

    async def get(self, resource: str, query: str = "") -> aiohttp.ClientResponse:
        assert self.http
        assert self.server
        path = collection_path(None, resource)
        return await self.http.get(f"{self.server.make_url(path)}{query}")


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Server]:
    monkeypatch.setattr(kopf_session, "MAX_RETRY_BACKOFF", 0.0)
    told = Server()
    app = web.Application()
    app.router.add_get("/{path:.*}", told.answer)
    async with TestServer(app) as served:
        told.server = served
        told.session = KopfSession(cast("Any", Access(str(served.make_url("")))))
        told.session.follow(told, (QUEUES, CRON_JOBS), (None,))
        told.http = told.session.sign_in().aiohttp_session
        yield told
        await told.session.close()


async def test_a_refused_token_is_read_again_and_the_request_repeated(server: Server) -> None:
    server.answers = [web.Response(status=401), web.json_response({"items": []})]
    assert (await server.get(QUEUES)).status == 200
    assert server.tokens == ["Bearer 1", "Bearer 2"]


@pytest.mark.parametrize("status", [403, 404])
async def test_a_type_that_is_not_served_or_may_not_be_seen_is_waited_for(
    server: Server, status: int
) -> None:
    refusals: list[web.Response | bytes] = [web.Response(status=status) for _ in range(3)]
    server.answers = [*refusals, web.json_response({"items": []})]
    assert (await server.get(QUEUES)).status == 200
    assert server.answers == []


async def test_an_answer_about_what_is_not_watched_is_kopfs_matter(server: Server) -> None:
    server.answers = [web.Response(status=404)]
    assert (await server.get(JOBS)).status == 404


async def test_a_list_of_any_depth_is_read(server: Server) -> None:
    server.answers = [web.Response(text=f'{{"items": [{nested(5000)}, {{"b": 1}}]}}')]
    assert (await (await server.get(QUEUES)).json())["items"][1] == {"b": 1}


async def test_an_answer_of_any_depth_about_what_is_not_watched_is_read(server: Server) -> None:
    server.answers = [web.Response(text=f'{{"a": {nested(5000)}, "b": 1}}')]
    assert (await (await server.get(JOBS)).json())["b"] == 1


async def test_a_page_that_is_too_large_is_asked_for_again_in_smaller_parts(server: Server) -> None:
    large = web.Response(body=b" " * (MAX_PAGE_BYTES + 1))
    small = {"metadata": {"continue": "token"}, "items": [{"metadata": {"name": "one"}}]}
    server.answers = [large, web.json_response(small), web.json_response({"items": []})]
    page = await (await server.get(CRON_JOBS, "?limit=500")).json()
    assert page["items"] == small["items"]
    await server.get(CRON_JOBS, "?limit=500&continue=token")
    first, second, third = (int(limit) for limit in server.limits)
    assert second < first < 500
    assert third > second  # objects so small are asked for in larger pages


async def test_a_list_that_expires_between_two_pages_is_begun_again(server: Server) -> None:
    server.answers = [web.json_response({"items": []}), web.Response(status=410)]
    await server.get(QUEUES, "?limit=500")
    with pytest.raises(aiohttp.ClientPayloadError):
        await server.get(QUEUES, "?limit=500&continue=token")


async def test_after_a_watch_whose_version_has_expired_kopf_lists_again(server: Server) -> None:
    server.answers = [web.json_response({"kind": "Status", "code": 410}, status=410)]
    response = await server.get(QUEUES, "?watch=true&resourceVersion=1")
    assert response.status == 200
    lines = b"".join([chunk async for chunk in response.content.iter_chunked(1024)])
    assert lines == LIST_AGAIN + b"\n"


async def test_the_second_list_of_a_collection_is_told_of_and_its_pages_are_not(
    server: Server,
) -> None:
    server.answers = [web.json_response({"items": []}) for _ in range(4)]
    await server.get(QUEUES)
    await server.get(CRON_JOBS)
    await server.get(QUEUES, "?continue=token")
    assert server.relists == []
    await server.get(QUEUES)
    assert server.relists == [WatchedCollection(QUEUES, None)]


async def test_a_watch_is_readable_shows_that_it_goes_on_and_can_be_broken_off(
    server: Server,
) -> None:
    deep = f'{{"type": "ADDED", "object": {{"spec": {{"payload": {nested(5000)}}}}}}}'
    server.answers = [f'{deep}\n{{"b": 1}}\n'.encode()]
    response = await server.get(QUEUES, "?watch=true")
    begun = len(server.progress)
    body = response.content.iter_chunked(1024)
    lines = b""
    while lines.count(b"\n") < 2:
        lines += await anext(body)
    assert [list(json.loads(line)) for line in lines.splitlines()] == [["type", "object"], ["b"]]
    assert len(server.progress) > begun
    assert server.session
    server.session.restart(CRON_JOBS)
    assert not response.closed
    server.session.restart(QUEUES)
    with pytest.raises(aiohttp.ClientConnectionError):
        await anext(body)


class ExpiringWatches:
    """An API server whose watches all say at once that their version has expired.

    The first such line cancels the task that reads it, just when kopf is about to watch again.
    """

    def __init__(self) -> None:
        self.chunks = 0
        self.watcher: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def answer(self, request: web.Request) -> web.Response:
        if "watch" in request.query:
            return web.Response(body=LIST_AGAIN + b"\n")
        if request.path.endswith(f"/{QUEUES}"):
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})
        version = {"version": VERSION}
        group = {"name": GROUP, "versions": [version], "preferredVersion": version}
        kind = "Namespace" if request.path.startswith("/api/") else "AsyncQueue"
        resource: dict[str, Any] = {
            "name": f"{kind.lower()}s",
            "kind": kind,
            "singularName": kind.lower(),
        }
        resource |= {"namespaced": kind == "AsyncQueue", "verbs": ["list", "watch", "patch"]}
        return web.json_response({"versions": ["v1"], "groups": [group], "resources": [resource]})

    def on_watch_progress(self, _watched: WatchedCollection) -> None:
        """React to a page of a list, the head of a watch, and its first line, in this order."""
        self.chunks += 1
        if self.chunks == 3:
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().call_soon(task.cancel)
            self.watcher.set_result(task)

    def on_relist(self, _watched: WatchedCollection) -> None: ...


async def test_a_watch_that_is_to_end_just_when_kopf_begins_it_again_does_end() -> None:
    told, handlers, stop = ExpiringWatches(), kopf.OperatorRegistry(), asyncio.Event()

    @kopf.on.startup(registry=handlers)
    async def _configure(settings: kopf.OperatorSettings, **_: object) -> None:
        watch_only(settings)

    @kopf.on.login(registry=handlers)
    async def _sign_in(**_: object) -> kopf.AiohttpSession:
        return session.sign_in()

    @kopf.on.event(GROUP, VERSION, QUEUES, registry=handlers)
    async def _ignore(**_: object) -> None: ...

    app = web.Application()
    app.router.add_get("/{path:.*}", told.answer)
    async with TestServer(app) as served:
        session = KopfSession(cast("Any", Access(str(served.make_url("")))))
        session.follow(told, (QUEUES,), ("default",))
        operator = asyncio.create_task(
            kopf.operator(
                registry=handlers,
                standalone=True,
                namespaces=["default"],
                identity=PEERING_IDENTITY,
                stop_flag=stop,
            )
        )
        watcher = await told.watcher
        ended, _ = await asyncio.wait({watcher}, timeout=5.0)
        stop.set()
        await operator
        await session.close()
    assert ended == {watcher}


async def test_what_fails_is_started_again_with_pauses() -> None:
    runs: list[int] = []

    class Backoff:
        def next_delay(self) -> float:
            return 0.0

        def reset(self) -> None: ...

    async def run(_health: LoopHealth) -> None:
        runs.append(1)
        if len(runs) == 3:
            await asyncio.Event().wait()
        if len(runs) == 1:
            raise RuntimeError("no")

    supervised = asyncio.create_task(supervise(loop_health(), run, cast("Any", Backoff())))
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(runs) == 3
    supervised.cancel()
