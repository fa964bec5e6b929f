"""The shutdown in its written order: what claims first, what others rely on last."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob.app.context import Stop
from asyncjob_worker.components import Components
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.settings import Settings
from asyncjob_worker.tracing import NO_TRACING
from asyncjob_worker.worker import Drain, Worker
from support.parts.worker_parts import ME, ScriptedSession, an_app, held

ORDER = [
    "resources opened",
    "hooks begin",
    "registered",
    "heartbeats begin",
    "no more claims",
    "no wait for the abandoned",
    "draining registered",
    "stop all: draining",
    "watches ended",
    "lease emptied",
    "processes ended",
    "threads let go",
    "hooks told the rest",
    "resources closed",
    "heartbeats end",
]


class Recorder:
    """Parts that note what is done to them, in order. Slots end once their jobs are told to."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.noted = defaultdict[str, asyncio.Event](asyncio.Event)
        self.told = asyncio.Event()
        self.stubborn = False
        self.parts = cast("Components", SimpleNamespace())
        fill: dict[str, Any] = {
            "registration": {
                "register": self.later("registered"),
                "mark_draining": self.later("draining registered"),
                "deregister": self.later("lease emptied"),
            },
            "heartbeat": {
                "start": self.now("heartbeats begin"),
                "stop": self.now("heartbeats end"),
            },
            "slots": {"drain": self.now("no more claims"), "run": self.told.wait},
            "runner": {
                "running": {held()},
                "outliving": set(),
                "stop_waiting_for_abandoned": self.now("no wait for the abandoned"),
                "stop_all": self.stop_all,
                "set_resources": lambda _: self.note("resources opened"),
                "close": self.now("threads let go"),
                "end_processes": self.later("processes ended"),
            },
            "hooks": {"start": lambda _: self.note("hooks begin"), "close": self.hooks_end},
            "events": {"worker_started": lambda: None, "worker_stopping": lambda: None},
        }
        for name, members in fill.items():
            setattr(self.parts, name, SimpleNamespace(**members))

    def now(self, words: str) -> Callable[[], None]:
        return lambda: self.note(words)

    def later(self, words: str) -> Callable[[], Awaitable[None]]:
        async def note() -> None:
            self.note(words)

        return note

    def note(self, words: str) -> None:
        self.done.append(words)
        self.noted[words].set()

    def stop_all(self, why: Stop) -> None:
        self.note(f"stop all: {why.value}")
        if self.stubborn:
            self.parts.runner.outliving.update(self.parts.runner.running)
        else:
            self.parts.runner.running.clear()
        self.told.set()

    async def hooks_end(self) -> int:
        self.note("hooks told the rest")
        return 0

    async def close_resources(self, _: float) -> None:
        self.note("resources closed")

    async def watch(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.note("watches ended")


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def worker(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> Worker:
    """Return a worker of the recorder's parts."""
    made = Worker(
        an_app(),
        Settings(grace=0.0),
        ScriptedSession().session,
        ME,
        metrics=Metrics(),
        tracing=NO_TRACING,
    )
    monkeypatch.setattr(made, "_components", recorder.parts)
    monkeypatch.setattr(made, "_watches", lambda: [recorder.watch()])
    monkeypatch.setattr(made._resources, "close", recorder.close_resources)
    return made


async def test_a_job_whose_handler_still_runs_is_leased_until_the_process_is_gone(
    recorder: Recorder, worker: Worker
) -> None:
    recorder.stubborn = True
    running = asyncio.ensure_future(worker.run())
    await recorder.noted["heartbeats begin"].wait()
    worker.stop()
    assert await running
    assert recorder.done == ORDER[:-1]


@pytest.mark.parametrize("registered", [False, True], ids=["on its way", "stored"])
async def test_a_worker_stopped_while_it_starts_takes_its_registration_back(
    recorder: Recorder, worker: Worker, registered: bool
) -> None:
    async def begin() -> None:
        worker.stop()
        if not registered:
            await asyncio.Event().wait()

    recorder.parts.registration.register = begin  # type: ignore[method-assign]
    assert await worker.run()
    assert "lease emptied" in recorder.done


async def test_the_parts_of_a_worker_stop_in_the_written_order(
    recorder: Recorder, worker: Worker
) -> None:
    running = asyncio.ensure_future(worker.run())
    await recorder.noted["heartbeats begin"].wait()
    worker.stop()
    assert await running
    assert recorder.done == ORDER


async def test_handlers_that_end_within_the_grace_are_not_told_to_stop(
    recorder: Recorder,
) -> None:
    drain, slots = Drain(Settings(grace=1000.0)), asyncio.get_running_loop().create_future()
    parts = recorder.parts
    running = asyncio.ensure_future(drain.run(parts.slots, parts.runner, parts.registration, slots))
    await recorder.noted["draining registered"].wait()
    assert "stop all: draining" not in recorder.done
    slots.set_result(None)
    await running
    assert recorder.done[:2] == ["no more claims", "no wait for the abandoned"]


def test_a_drain_is_known_to_have_begun() -> None:
    drain = Drain(Settings())
    assert not drain.is_begun
    drain.begin()
    assert drain.is_begun
