"""The project's own session on the API server in memory, and what goes wrong on the way to it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from asyncjob.errors import (
    AlreadyExistsError,
    ConflictError,
    ExpiredError,
    ObjectNotFoundError,
    ThrottledError,
    UnauthorizedError,
    UnknownOutcomeError,
)
from asyncjob.kube import KubeSession, WatchEvent, transport, watch
from asyncjob.names import JOBS, collection_path, job_path
from asyncjob_simulation.apiserver import (
    ADMIN,
    Fault,
    MemoryAccess,
    MemoryConnections,
    ScriptedFaults,
)
from support.in_memory.memory import Clock, memory_server
from support.objects.builders import job

PATH = collection_path("default", JOBS)


class Setting:
    """A server with one session to it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.server = memory_server(self.clock)
        self.faults = ScriptedFaults()
        self.connections = MemoryConnections(self.server, self.faults)
        self.session = self.open(self.server.admin_token)

    def open(self, token: str, renew: Callable[[], str] | None = None) -> KubeSession:
        access = MemoryAccess(self.connections, token, renew=renew)
        return KubeSession(access, field_manager="tests")

    async def create(self, name: str) -> Any:
        return await self.session.create(PATH, job(name))

    def stored(self, name: str) -> Any:
        return self.server.get(job_path("default", name))

    @property
    def names(self) -> list[str]:
        kind = self.server.storage.collection(("asyncjob.dev", JOBS))
        return [name for _, name in kind.keys]


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    made = Setting()
    async with made.session:
        yield made


@asynccontextmanager
async def watching(
    session: KubeSession, **params: str
) -> AsyncGenerator[AsyncGenerator[WatchEvent]]:
    async with aclosing(watch(session, PATH, params)) as events:
        yield events


async def test_the_session_creates_reads_and_lists_in_pages(setting: Setting) -> None:
    for number in range(50):
        await setting.create(f"j{number:02}")
    with pytest.raises(AlreadyExistsError):
        await setting.create("j01")
    with pytest.raises(ObjectNotFoundError):
        await setting.session.get(job_path("default", "none"))
    listed = [obj async for obj in setting.session.list(PATH)]
    assert [obj["metadata"]["name"] for obj in listed] == setting.names  # type: ignore[index,call-overload]  # JSON


async def test_a_list_stays_as_of_its_first_page_and_expires_after_compaction(
    setting: Setting,
) -> None:
    for number in range(30):
        await setting.create(f"j{number:02}")
    pages = setting.session.pages(PATH)
    first = await anext(pages)
    await setting.create("j99")
    rest: Any = await anext(pages)
    assert "j99" not in [obj["metadata"]["name"] for obj in rest["items"]]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]  # type: ignore[index,call-overload]  # JSON

    again = setting.session.pages(PATH)
    await anext(again)
    await setting.create("k")
    setting.server.storage.compact()
    with pytest.raises(ExpiredError):
        await anext(again)


@pytest.mark.parametrize(("lost", "is_there"), [("before", False), ("after", True)])
async def test_an_answer_is_lost_before_or_after_the_effect(
    setting: Setting, lost: Any, *, is_there: bool
) -> None:
    setting.faults.add(Fault(lost=lost), method="POST")
    with pytest.raises(UnknownOutcomeError):
        await setting.create("a")
    assert setting.names == (["a"] if is_there else [])


async def test_a_request_can_take_effect_after_its_loss_was_heard_of(setting: Setting) -> None:
    setting.faults.add(Fault(lost="late", before=0.01), method="POST")
    with pytest.raises(UnknownOutcomeError):
        await setting.create("a")
    assert setting.names == []
    await asyncio.sleep(0.02)
    assert setting.names == ["a"]


async def test_a_throttled_request_is_sent_again_by_the_session(setting: Setting) -> None:
    setting.faults.add(Fault(status=429, retry_after=0), method="POST", times=2)
    await setting.create("a")
    setting.faults.add(Fault(status=429, retry_after=0), times=9)
    with pytest.raises(ThrottledError):
        await setting.create("b")


async def test_refusals_of_any_code_can_be_had(setting: Setting) -> None:
    setting.faults.add(Fault(status=409, reason="Conflict"), method="PATCH")
    setting.faults.add(Fault(status=503), method="PATCH")
    await setting.create("a")
    for error in (ConflictError, UnknownOutcomeError):
        with pytest.raises(error):
            await setting.session.merge_patch(job_path("default", "a"), {"spec": {"priority": 1}})
    assert setting.stored("a")["spec"]["priority"] == 0


async def test_a_void_token_is_taken_again_once(setting: Setting) -> None:
    tokens = setting.server.tokens
    first, second = tokens.issue(ADMIN, seconds=10), tokens.issue(ADMIN)
    session = setting.open(first, renew=lambda: second)
    await session.get(PATH)
    setting.clock.now += 11
    await session.get(PATH)
    tokens.revoke(second)
    with pytest.raises(UnauthorizedError):
        await session.get(PATH)


async def test_a_watch_goes_on_where_it_was_cut_and_misses_nothing(setting: Setting) -> None:
    version = (await setting.create("a"))["metadata"]["resourceVersion"]
    setting.faults.add(Fault(breaks=True), path=JOBS, events=True)
    async with watching(setting.session, resourceVersion=version) as events:
        await setting.create("b")
        with pytest.raises(UnknownOutcomeError):
            await anext(events)
    async with watching(setting.session, resourceVersion=version) as events:
        assert (await anext(events)).object["metadata"]["name"] == "b"  # type: ignore[index,call-overload]  # JSON


async def test_a_late_event_keeps_its_place_before_later_ones(setting: Setting) -> None:
    version = (await setting.create("a"))["metadata"]["resourceVersion"]
    setting.faults.add(Fault(before=0.02), events=True)
    async with watching(setting.session, resourceVersion=version) as events:
        coming = asyncio.create_task(collect(events, 2))
        await asyncio.sleep(0)
        begun = asyncio.get_running_loop().time()
        await setting.create("b")
        await setting.create("c")
        assert await coming == ["b", "c"]
        assert asyncio.get_running_loop().time() - begun >= 0.02


async def collect(events: AsyncGenerator[WatchEvent], count: int) -> list[Any]:
    found: list[Any] = [await anext(events) for _ in range(count)]
    return [event.object["metadata"]["name"] for event in found]


async def test_a_watch_from_a_forgotten_version_ends_with_410(setting: Setting) -> None:
    version = (await setting.create("a"))["metadata"]["resourceVersion"]
    await setting.create("b")
    setting.server.storage.compact()
    async with watching(setting.session, resourceVersion=version) as events:
        with pytest.raises(ExpiredError):
            await anext(events)


async def test_a_fault_ends_a_watch_with_410(setting: Setting) -> None:
    version = (await setting.create("a"))["metadata"]["resourceVersion"]
    setting.faults.add(Fault(expires=True), events=True)
    async with watching(setting.session, resourceVersion=version) as events:
        await setting.create("b")
        with pytest.raises(ExpiredError):
            await anext(events)


async def test_a_quiet_watch_tells_by_bookmarks_how_far_it_has_come(setting: Setting) -> None:
    version = (await setting.create("a"))["metadata"]["resourceVersion"]
    setting.connections.bookmark_seconds = 0.01
    selector = {"labelSelector": "none=there", "resourceVersion": version}
    async with watching(setting.session, **selector) as events:
        coming = asyncio.create_task(anext(events))
        await asyncio.sleep(0)
        newest = (await setting.create("b"))["metadata"]["resourceVersion"]
        event = await coming
    assert (event.type, event.resource_version) == ("BOOKMARK", newest)


async def test_versions_are_forgotten_after_a_while(setting: Setting) -> None:
    version = (await setting.create("a"))["metadata"]["resourceVersion"]
    await setting.create("b")
    setting.clock.now += 700
    await setting.create("c")
    async with watching(setting.session, resourceVersion=version) as events:
        with pytest.raises(ExpiredError):
            await anext(events)


async def test_the_session_knows_the_servers_time(setting: Setting) -> None:
    await setting.session.get(PATH)
    told = setting.session.server_time()
    assert told is not None
    assert 0 <= told - setting.clock.now < 1


async def test_an_answer_that_was_long_on_its_way_does_not_tell_the_time(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one that waits in a socket while the process stands still: it tells of the past."""
    monkeypatch.setattr(transport, "_MAX_DATE_LAG_SECONDS", 0.05)
    await setting.session.get(PATH)
    began, loop = setting.clock.now, asyncio.get_running_loop()
    setting.clock.now += 40
    await setting.session.get(PATH)
    setting.clock.now = began
    setting.faults.add(Fault(after=0.2))
    await setting.session.get(PATH)
    told = setting.session.server_time()
    assert told is not None
    assert told >= began + 39
    at = loop.time()
    monkeypatch.setattr(transport, "_MAX_DATE_AGE_SECONDS", -1.0)
    setting.faults.add(Fault(after=0.2))
    await setting.session.get(PATH)
    told = setting.session.server_time()
    assert told is not None
    assert told < began + 2 + loop.time() - at
