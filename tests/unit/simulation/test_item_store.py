"""The store in memory that simulated workers write results to, and what goes wrong with it."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob.offload import Address, Store
from asyncjob.offload.errors import (
    ObjectMissingError,
    OffloadError,
    StoreForbiddenError,
    StoreUnavailableError,
)
from asyncjob_simulation.dice import Dice, FaultChooser
from asyncjob_simulation.event_loop import SimulationLoop
from asyncjob_simulation.item_store import RESULTS, MemoryStore, StoreRequests
from asyncjob_simulation.processes import Process
from asyncjob_simulation.story import Recorder


@pytest.fixture(params=["in memory", "real"])
def store(request: pytest.FixtureRequest) -> Store:
    return MemoryStore() if request.param == "in memory" else Store()


def test_both_stores_keep_objects_whole_in_folders(store: Store, tmp_path: Path) -> None:
    root = Address.folder(f"file://{tmp_path}")
    roots = (root,)
    assert store.names(root.join("array"), roots) == []
    store.write(root.join("array", "0", "b.jsonl"), b"longer", root)
    store.write(root.join("array", "0", "b.jsonl"), b"new", root)
    store.write(root.join("array", "1", "a.jsonl"), b"other", root)
    store.write(root.join("array-2", "0", "c.jsonl"), b"of another", root)
    assert sorted(store.names(root.join("array"), roots)) == ["0", "1"]
    assert store.names(root.join("array", "0"), roots) == ["b.jsonl"]
    assert store.read(root.join("array", "0", "b.jsonl"), roots) == b"new"
    with pytest.raises(ObjectMissingError):
        store.read(root.join("array", "0", "a.jsonl"), roots)


class Setting:
    """A worker that writes one object, at a store with faults of one kind only."""

    def __init__(self) -> None:
        self.loop = SimulationLoop(random.Random(7))
        self.loop.set_exception_handler(lambda *_: None)  # of tasks that still wait at the end
        self.store = MemoryStore()
        self.requests = StoreRequests(self.loop, FaultChooser(Dice(7)), Recorder(self.loop))
        self.requests._rates.clear()
        self.worker = Process("worker-0", self.loop)
        self.ended: list[object] = []

    def put(self, kind: str = "", *, seconds: float = 10.0) -> "Setting":
        if kind:
            self.requests._rates[kind] = 1.0
        self.worker.spawn(self._put(seconds))
        return self

    async def _put(self, seconds: float) -> None:
        address = RESULTS.join("array", "0", "1-0-1-uid-0.jsonl")
        try:
            await self.requests.run(
                lambda: self.store.write(address, b"x", RESULTS), seconds=seconds
            )
        except (OffloadError, TimeoutError) as error:
            self.ended.append(type(error))
        else:
            self.ended.append("stored")

    def after(self, seconds: float) -> tuple[list[object], int]:
        """Return how requests have ended by then, and how many objects there are."""
        self.loop.run_until_complete(asyncio.sleep(seconds))
        return self.ended, len(self.store.objects)


@pytest.fixture
def setting() -> Iterator[Setting]:
    made = Setting()
    yield made
    made.loop.close()


def test_a_request_takes_effect_and_is_answered(setting: Setting) -> None:
    assert setting.put().after(0.1) == (["stored"], 1)


@pytest.mark.parametrize(
    ("kind", "objects"), [("fails", 0), ("forbidden", 0), ("lost", 1)], ids=str
)
def test_a_request_fails_before_or_after_its_effect(
    setting: Setting, kind: str, objects: int
) -> None:
    (error,), stored = setting.put(kind).after(0.1)
    assert isinstance(error, type)
    assert issubclass(error, OffloadError)
    assert stored == objects


def test_a_late_request_takes_effect_after_its_client_has_given_up(setting: Setting) -> None:
    assert setting.put("late").after(0.09) == ([StoreUnavailableError], 0)
    assert setting.after(25.0)[1] == 1


def test_a_slow_request_takes_effect_though_nobody_waits_for_it(setting: Setting) -> None:
    assert setting.put("slow", seconds=0.01).after(0.1) == ([TimeoutError], 0)
    assert setting.after(15.0)[1] == 1


def test_a_request_of_a_process_that_has_been_killed_takes_effect(setting: Setting) -> None:
    setting.put().loop.call_later(0.0005, setting.worker.kill)
    assert setting.after(0.1) == ([], 1)


def test_who_has_made_a_request_may_be_killed_soon(setting: Setting) -> None:
    setting.put("killed").after(2.0)
    for _ in range(20):  # after some callbacks, or a while
        setting.worker.call(lambda: None)
    setting.after(0.1)
    assert not setting.worker.is_alive
    assert len(setting.store.objects) == 1


def test_nothing_goes_wrong_once_it_has_recovered(setting: Setting) -> None:
    setting.requests.recover()
    assert setting.put("fails").after(0.1) == (["stored"], 1)


def test_an_outage_fails_requests_until_it_is_over(setting: Setting) -> None:
    setting.requests._go_away("store outage 0")
    (error,), objects = setting.put().after(0.1)
    assert error in {StoreUnavailableError, StoreForbiddenError}
    assert objects == 0
    setting.after(300.0)  # later than any other that the seed has
    assert setting.put().after(0.1) == ([error, "stored"], 1)
