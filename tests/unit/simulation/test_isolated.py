"""Handlers in processes of their own: when they go on, when they stand still, and how they end."""

import asyncio
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from asyncjob.app.error_report import HandlerCrashedError
from asyncjob.offload.errors import StoreRefusedError
from asyncjob_simulation.event_loop import SimulationLoop
from asyncjob_simulation.isolated import start_isolated
from asyncjob_simulation.processes import Process, current_process
from asyncjob_worker.isolation.executor import RunningHandler


class Files:
    """The worker's files: what is written to them, and in whose process; refuses `refused`."""

    def __init__(self, loop: SimulationLoop) -> None:
        self.loop = loop
        self.written: list[tuple[str, str, bytes]] = []
        self.processes: list[str] = []

    def results(self, uri: str) -> "Files":
        if uri == "refused":
            raise StoreRefusedError("not there")
        return self

    async def write(self, folder: str, name: str, data: bytes) -> None:
        process = current_process()
        assert process is not None
        self.processes.append(process.name)
        await asyncio.sleep(1.0)
        self.written.append((folder, name, data))


class Setting:
    """A worker's process with one handler, which counts seconds."""

    def __init__(self) -> None:
        self.loop = SimulationLoop(random.Random(7))
        self.loop.set_exception_handler(lambda *_: None)  # of tasks that still wait at the end
        self.worker = Process("worker-0", self.loop)
        self.seconds = 0
        self.interrupted = False
        self.ended: list[object] = []
        self.running: RunningHandler | None = None
        self.context: Any = None
        self.files = Files(self.loop)
        self.worker.spawn(self._work())
        self.sleep(0.1)

    async def _handle(self, context: Any, payload: Any) -> str:
        self.context = context
        for _ in range(payload):
            await asyncio.sleep(1.0)
            self.seconds += 1
        return "done"

    async def _work(self) -> None:
        context: Any = SimpleNamespace(
            stop=lambda: setattr(self, "interrupted", True), files=self.files
        )
        handler: Any = SimpleNamespace(function=self._handle)
        self.running = start_isolated(None, handler, context, 5)
        try:
            self.ended.append(await self.running.future)
        except HandlerCrashedError as error:
            self.ended.append(error)

    def write(self, uri: str) -> list[object]:
        """Have the handler's process write results; how that ends is added to what is returned."""
        ended: list[object] = []

        async def write() -> None:
            try:
                await self.context._files.results(uri).write("0", "name", b"x")
            except StoreRefusedError as error:
                ended.append(error)
            else:
                ended.append("written")

        self.worker.children[0].spawn(write())
        return ended

    def sleep(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))


@pytest.fixture
def setting() -> Iterator[Setting]:
    made = Setting()
    yield made
    made.loop.close()


def test_its_result_reaches_the_worker(setting: Setting) -> None:
    setting.sleep(6.0)
    assert setting.ended == ["done"]


def test_it_goes_on_while_the_workers_event_loop_is_blocked(setting: Setting) -> None:
    setting.worker.block(10.0)
    setting.sleep(6.0)
    assert (setting.seconds, setting.ended) == (5, [])
    setting.sleep(5.0)
    assert setting.ended == ["done"]


def test_any_thread_can_kill_it(setting: Setting) -> None:
    assert setting.running is not None
    assert setting.running.kill_threadsafe is not None
    setting.worker.block(4.0)
    setting.sleep(1.5)
    setting.running.kill_threadsafe()
    setting.sleep(5.0)
    assert setting.seconds == 1
    assert isinstance(setting.ended[0], HandlerCrashedError)


def test_it_can_be_asked_to_stop(setting: Setting) -> None:
    assert setting.running is not None
    setting.worker.call(setting.running.interrupt)
    setting.sleep(5.0)
    assert setting.interrupted
    assert setting.seconds == 0


def test_it_stands_still_and_ends_with_its_container(setting: Setting) -> None:
    setting.worker.hold()
    setting.sleep(3.0)
    assert setting.seconds == 0
    setting.worker.release()
    setting.sleep(2.0)
    assert setting.seconds > 0
    setting.worker.kill()
    seconds = setting.seconds
    setting.sleep(5.0)
    assert setting.seconds == seconds


def test_the_worker_writes_its_results(setting: Setting) -> None:
    ended = setting.write("folder")
    setting.sleep(0.5)
    assert (ended, setting.files.processes) == ([], ["worker-0"])
    setting.sleep(1.0)
    assert ended == ["written"]
    assert setting.files.written == [("0", "name", b"x")]


def test_it_waits_while_the_workers_event_loop_is_blocked(setting: Setting) -> None:
    setting.worker.block(4.0)
    ended = setting.write("folder")
    setting.sleep(3.5)
    assert (ended, setting.files.processes) == ([], [])
    setting.sleep(2.0)
    assert ended == ["written"]


def test_it_is_told_where_results_may_not_go_when_it_writes_some(setting: Setting) -> None:
    ended = setting.write("refused")
    setting.sleep(0.1)
    assert isinstance(ended[0], StoreRefusedError)


def test_the_worker_goes_on_with_what_a_killed_process_writes(setting: Setting) -> None:
    setting.write("folder")
    setting.sleep(0.5)
    assert setting.running is not None
    setting.worker.children[0].kill()
    setting.sleep(1.0)
    assert setting.files.written == [("0", "name", b"x")]
    assert isinstance(setting.ended[0], HandlerCrashedError)
