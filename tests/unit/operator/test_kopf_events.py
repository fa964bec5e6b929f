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
from support import builders
from support.audience import Audience
from support.fake_session import FakeSession
from support.vitals import quarantine

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


class Scene:
    """Queues of all namespaces."""

    def __init__(self) -> None:
        self.cluster, self.cache = Cluster(), Audience().observer.queues
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
async def scene() -> AsyncGenerator[Scene]:
    made = Scene()
    yield made
    await made.tasks.stop()


async def test_nothing_is_taken_before_the_start_as_all_is_listed_then(scene: Scene) -> None:
    scene.queues.on_event("ADDED", queue("early", 5))
    assert scene.paused() == {}
    scene.cluster.store("listed")
    await scene.start()
    assert scene.paused() == {"listed": False}


async def test_what_kopf_sees_is_taken(scene: Scene) -> None:
    scene.cluster.store("stays")
    scene.cluster.store("goes")
    await scene.start()
    scene.queues.on_event(None, queue("stays", 2000, paused=True))
    scene.queues.on_event("ADDED", queue("comes", 2001))
    scene.queues.on_event("DELETED", queue("goes", 2002))
    assert scene.paused() == {"stays": True, "comes": False}


async def test_a_list_undoes_nothing_that_kopf_has_seen_while_it_was_read(scene: Scene) -> None:
    def meanwhile() -> None:
        scene.queues.on_event("MODIFIED", queue("changed", 2000, paused=True))
        scene.queues.on_event("DELETED", queue("deleted", 2001))
        scene.queues.on_event("ADDED", queue("added", 2002))

    scene.cluster.store("changed")
    scene.cluster.store("deleted")
    scene.cluster.meanwhile = meanwhile
    await scene.start()
    assert scene.paused() == {"changed": True, "added": False}


async def test_a_deletion_that_kopf_has_missed_is_seen_once_kopf_has_listed_again(
    scene: Scene,
) -> None:
    scene.cluster.store("one")
    scene.cluster.store("other")
    await scene.start()
    del scene.cluster.objects[f"{PATH}/other"]
    scene.queues.resync_now(None)
    await scene.until_listed(2)
    assert scene.paused() == {"one": False}


async def test_a_comparison_that_fails_is_tried_again_soon_and_undoes_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kopf_collections, "MAX_WATCH_PAUSE", 0.0)
    scene.cluster.store("one")
    scene.cluster.store("other")
    await scene.start()
    del scene.cluster.objects[f"{PATH}/other"]
    scene.cluster.fail("GET", PATH, UnknownOutcomeError("no answer"))
    scene.queues.resync_now(None)
    for _ in range(20):
        await asyncio.sleep(0)
    assert scene.paused() == {"one": False, "other": False}
    logged = capsys.readouterr().out
    assert "resync failed" in logged
    assert "loop restarting" not in logged
    scene.cluster.failures.clear()
    await scene.until_listed(2)
    assert scene.paused() == {"one": False}


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
