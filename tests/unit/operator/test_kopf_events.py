"""What kopf's handlers are not told is made up for by lists beside them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, cast

import pytest

from asyncjob.errors import UnknownOutcomeError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.names import QUEUES, collection_path
from asyncjob_operator import kopf_collections
from asyncjob_operator.kopf_collections import queue_collection
from asyncjob_operator.loops import ResyncTimer
from asyncjob_operator.supervision import TaskSupervisor
from asyncjob_operator.telemetry.loop_health import HealthMonitor
from support.in_memory.fake_session import FakeSession
from support.objects import builders
from support.parts.audience import Audience
from support.parts.vitals import quarantine

NAMESPACE = "default"
PATH = collection_path(None, QUEUES)


def queue(name: str, version: int, **spec: Any) -> JsonObject:
    made = builders.queue(name, **spec)
    made["metadata"] |= {"namespace": NAMESPACE, "resourceVersion": str(version)}
    return cast("JsonObject", made)


class Cluster(FakeSession):
    """A session; `meanwhile` happens while a list is read, before its objects are shown."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] = lambda: None
        self.lists = 0

    def store(self, name: str) -> None:
        self.put(f"{PATH}/{name}", cast("Any", queue(name, 0)))

    async def pages(
        self, path: str, params: Any = None, *, accept: str = ""
    ) -> AsyncIterator[dict[str, Any]]:
        found = [page async for page in super().pages(path, params, accept=accept)]
        self.meanwhile()
        for page in found:
            yield page
        self.lists += 1


class QueueEventsHarness:
    """Queues of all namespaces."""

    def __init__(self) -> None:
        self.cluster, self.cache = Cluster(), Audience().caches.queues
        self.tasks = TaskSupervisor(0.0, 0.0, HealthMonitor(60.0, lambda: 0.0))
        session = cast("KubeSession", self.cluster)
        self.queues = queue_collection(session, (None,), self.cache, quarantine(), 3600.0)

    async def start(self) -> None:
        [store] = self.queues.start(self.tasks)
        await asyncio.wait_for(store.synced.wait(), 5)

    async def until_listed(self, times: int) -> None:
        async with asyncio.timeout(5):
            while self.cluster.lists < times:  # noqa: ASYNC110  # a fake, which tells nobody
                await asyncio.sleep(0)
            await asyncio.sleep(0)

    def paused(self) -> dict[str, bool]:
        """Return which queues are known, and whether each is paused."""
        names = self.cache.names_in(None)
        return {name: self.cache.view(space, name).paused for space, name in names}


@pytest.fixture
async def harness() -> AsyncGenerator[QueueEventsHarness]:
    made = QueueEventsHarness()
    yield made
    await made.tasks.stop()


async def test_nothing_is_taken_before_the_start_as_all_is_listed_then(
    harness: QueueEventsHarness,
) -> None:
    harness.queues.on_event("ADDED", queue("early", 5))
    assert harness.paused() == {}
    harness.cluster.store("listed")
    await harness.start()
    assert harness.paused() == {"listed": False}


async def test_what_kopf_sees_is_taken(harness: QueueEventsHarness) -> None:
    harness.cluster.store("stays")
    harness.cluster.store("goes")
    await harness.start()
    harness.queues.on_event(None, queue("stays", 2000, paused=True))
    harness.queues.on_event("ADDED", queue("comes", 2001))
    harness.queues.on_event("DELETED", queue("goes", 2002))
    assert harness.paused() == {"stays": True, "comes": False}


async def test_a_list_undoes_nothing_that_kopf_has_seen_while_it_was_read(
    harness: QueueEventsHarness,
) -> None:
    def meanwhile() -> None:
        harness.queues.on_event("MODIFIED", queue("changed", 2000, paused=True))
        harness.queues.on_event("DELETED", queue("deleted", 2001))
        harness.queues.on_event("ADDED", queue("added", 2002))

    harness.cluster.store("changed")
    harness.cluster.store("deleted")
    harness.cluster.meanwhile = meanwhile
    await harness.start()
    assert harness.paused() == {"changed": True, "added": False}


async def test_a_deletion_that_kopf_has_missed_is_seen_once_kopf_has_listed_again(
    harness: QueueEventsHarness,
) -> None:
    harness.cluster.store("one")
    harness.cluster.store("other")
    await harness.start()
    del harness.cluster.objects[f"{PATH}/other"]
    harness.queues.resync_now(None)
    await harness.until_listed(2)
    assert harness.paused() == {"one": False}


async def test_a_comparison_that_fails_is_tried_again_soon_and_undoes_nothing(
    harness: QueueEventsHarness, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kopf_collections, "MAX_WATCH_PAUSE", 0.0)
    harness.cluster.store("one")
    harness.cluster.store("other")
    await harness.start()
    del harness.cluster.objects[f"{PATH}/other"]
    harness.cluster.fail("GET", PATH, UnknownOutcomeError("no answer"))
    harness.queues.resync_now(None)
    for _ in range(20):
        await asyncio.sleep(0)
    assert harness.paused() == {"one": False, "other": False}
    logged = capsys.readouterr().out
    assert "resync failed" in logged
    assert "loop restarting" not in logged
    harness.cluster.failures.clear()
    await harness.until_listed(2)
    assert harness.paused() == {"one": False}


async def test_a_comparison_that_is_asked_for_while_one_runs_follows_it() -> None:
    timer = ResyncTimer(3600.0)
    timer.trigger()
    await asyncio.wait_for(timer.wait(), 5)
    waiting = asyncio.create_task(timer.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    timer.trigger()
    await asyncio.wait_for(waiting, 5)


async def test_without_being_asked_for_a_comparison_comes_after_its_interval() -> None:
    await asyncio.wait_for(ResyncTimer(0.0).wait(), 5)
