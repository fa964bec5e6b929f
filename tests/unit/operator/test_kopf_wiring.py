"""How kopf is held to watching."""

import asyncio
import itertools
from typing import Any, cast

import kopf
import pytest
from kopf._cogs.structs.references import Insights, Resource

from asyncjob.names import GROUP, QUEUES, VERSION
from asyncjob_operator.kube import kopf_watch
from asyncjob_operator.kube.kopf_watch import (
    EndlessBackoffs,
    kopf_settings,
    registry,
    watch_queues,
)
from asyncjob_operator.supervision import supervise
from asyncjob_operator.telemetry.loop_health import LoopHealth
from support.vitals import pulse


def test_kopf_never_runs_out_of_patience() -> None:
    backoffs = list(itertools.islice(EndlessBackoffs(), 1000))
    assert backoffs[0] == 1.0
    assert backoffs[-1] == 10.0
    assert not hasattr(EndlessBackoffs(), "__len__")


def test_kopf_posts_nothing_stores_nothing_and_joins_no_peers() -> None:
    chosen = kopf_settings()
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


def test_queues_have_one_handler_and_it_is_for_events() -> None:
    handlers = registry(cast("Any", None), lambda _kind, _obj: None)
    [watching] = handlers._watching.get_all_handlers()
    assert watching.id == "queue"
    for other in (handlers._changing, handlers._spawning, handlers._indexing, handlers._webhooks):
        assert list(other.get_all_handlers()) == []


async def test_the_handler_passes_the_event_on_and_returns_none() -> None:
    seen: list[tuple[str | None, str]] = []

    def sink(kind: str | None, obj: Any) -> None:
        seen.append((kind, obj["metadata"]["name"]))

    [handler] = registry(cast("Any", None), sink)._watching.get_all_handlers()
    function: Any = handler.fn
    event = {"type": "ADDED", "object": {"metadata": {"name": "job"}}}
    assert await function(event=event, name="job", patch=None) is None
    assert seen == [("ADDED", "job")]


async def test_when_kopf_dies_it_says_so_and_ends_no_tasks_but_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bystander = asyncio.create_task(asyncio.Event().wait())
    started = asyncio.Event()
    nobody_signs_in = kopf.OperatorRegistry()
    monkeypatch.setattr(kopf_watch, "registry", lambda *_: nobody_signs_in)
    with pytest.raises(kopf.LoginError):
        await watch_queues(cast("Any", None), (), lambda *_: None, started.set)
    assert started.is_set()
    assert not bystander.done()
    bystander.cancel()


async def test_kopf_need_not_ask_for_its_users_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user need not be in its passwd file, and kopf would fail."""
    given: dict[str, Any] = {}

    async def spawn_tasks(**details: Any) -> None:
        given.update(details)
        raise TimeoutError

    monkeypatch.setattr(kopf, "spawn_tasks", spawn_tasks)
    with pytest.raises(TimeoutError):
        await watch_queues(cast("Any", None), (), lambda *_: None, lambda: None)
    assert given["identity"]


async def test_what_fails_is_started_anew_with_pauses() -> None:
    runs: list[int] = []
    failures: list[int] = []

    class Backoff:
        def next_delay(self) -> float:
            return 0.0

        def reset(self) -> None: ...

    async def run(_pulse: LoopHealth) -> None:
        runs.append(1)
        if len(runs) == 3:
            await asyncio.Event().wait()
        if len(runs) == 1:
            raise RuntimeError("no")

    supervised = asyncio.create_task(
        supervise(pulse(), run, cast("Any", Backoff()), lambda: failures.append(1))
    )
    for _ in range(50):
        await asyncio.sleep(0)
    assert (len(runs), len(failures)) == (3, 2)
    supervised.cancel()


@pytest.mark.parametrize("served", [True, False])
async def test_kopf_is_stopped_where_it_has_found_no_type_to_watch(served: bool) -> None:
    insights, stop = Insights(), asyncio.Event()
    looking = asyncio.create_task(kopf_watch._stop_if_not_installed(insights, stop))
    await asyncio.sleep(0)
    assert not stop.is_set()
    if served:
        insights.watched_resources.add(Resource(GROUP, VERSION, QUEUES))
    insights.ready_resources.set()
    await looking
    assert stop.is_set() is not served
