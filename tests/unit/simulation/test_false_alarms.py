"""What the invariants of a simulation must not take for a broken promise."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob.names import job_path
from asyncjob_simulation.apiserver import Call
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.dice import Dice, FaultChooser
from asyncjob_simulation.handlers import HandlerCalls, RecordedCall
from asyncjob_simulation.invariants import Invariants
from asyncjob_simulation.network import SLOW_SECONDS, Connections, Network, Rates
from asyncjob_simulation.processes import Process
from asyncjob_simulation.story import Recorder
from asyncjob_worker.cli import WorkerExitCode
from support.in_memory.memory import Clock, Stored, memory_server
from support.objects.builders import claim_of, stored

PATH = job_path(NAMESPACE, "job")
STATUS = f"{PATH}/status"
WORKER = "worker-0"


class World:
    """An API server and a worker, without an event loop: the time is in the test's hands."""

    def __init__(self) -> None:
        self.clock = Clock(0.0)
        self.loop = cast("Any", SimpleNamespace(time=self.clock, call_soon=lambda *_, **__: None))
        self.server = memory_server(self.clock)
        self.jobs = Stored(self.server)
        self.worker = Process(WORKER, self.loop)
        self.invariants = Invariants(
            self.server,
            self.loop,
            Recorder(self.loop),
            HandlerCalls(self.loop),
            {WORKER: self.worker},
        )

    def claim(self) -> Any:
        """Have the worker claim a new job, and return that."""
        job = self.jobs.put(PATH, stored())
        self.invariants.look("people")
        claim = claim_of(job, WORKER, "uid")
        job = self.jobs.put(PATH, {**job, "status": {**job["status"], **claim["status"]}})
        self.invariants.look(WORKER)
        return job

    def begin_handler(self, job: Any, process: Process | None = None) -> list[str]:
        """Have a handler begin, and return the promises that this breaks."""
        meta, now = job["metadata"], self.clock()
        run = RecordedCall(meta["uid"], meta["name"], 1, process or self.worker, now)
        self.invariants.on_handler(run)
        return [one.promise for one in self.invariants.violations]


@pytest.fixture
def world() -> World:
    return World()


def test_a_handler_may_begin_when_its_claim_is_answered_after_its_job_was_deleted(
    world: World,
) -> None:
    job = world.claim()
    del world.jobs[PATH]
    world.invariants.look("people")
    world.clock.now += 5
    assert world.begin_handler(job) == []


def test_a_handler_of_a_deleted_job_still_needs_the_lease_and_its_time(world: World) -> None:
    job = world.claim()
    del world.jobs[PATH]
    world.invariants.look("people")
    other = Process("worker-1", world.loop)
    assert world.begin_handler(job, other) == ["a handler begins with a lease"]
    world.clock.now += job["status"]["lease"]["durationSeconds"] + 1
    assert world.begin_handler(job) == ["a handler begins with a lease"] * 2


class ScriptedFaults(FaultChooser):
    """Has each request go wrong in the way that comes next; what is slow takes longest."""

    def __init__(self, *kinds: str) -> None:
        super().__init__(LongestTimes(0))
        self._kinds = list(kinds)

    def wants(self, name: str, *_: Any) -> bool:
        happens = name.endswith(f"|{self._kinds[0]}")
        if happens:
            self._kinds.pop(0)
        return happens


class LongestTimes(Dice):
    """Dice that have a request be on its way for as long as it may."""

    def between(self, *low_and_high: Any) -> float:
        return float(low_and_high[-1])


def test_a_slow_claim_hinders_a_worker_until_it_is_answered_whatever_fails_beside_it(
    world: World,
) -> None:
    faults = ScriptedFaults("slow", "unavailable", "unavailable")
    network = Network(world.server, world.loop, faults, Recorder(world.loop), Rates())
    connections = Connections(network, world.worker)
    assert connections.judge(Call("PATCH", STATUS, False, "", b'{"claim": 1}')).after > 1
    assert network.heartbeats_hindered == {WORKER: 2 * SLOW_SECONDS}
    world.clock.now = 1.0
    heartbeat = Call("PATCH", STATUS, False, "", b"[]")
    assert connections.judge(heartbeat).status == 503
    assert network.heartbeats_hindered == {WORKER: 2 * SLOW_SECONDS}
    world.clock.now = 100.0
    connections.judge(heartbeat)
    assert network.heartbeats_hindered[WORKER] == pytest.approx(100, abs=0.1)


@pytest.mark.parametrize(
    ("is_asked_to_end", "code", "broken"),
    [
        pytest.param(True, WorkerExitCode.RESTART, True, id="asked to end, and wants a restart"),
        pytest.param(False, WorkerExitCode.RESTART, False, id="ends by itself to be restarted"),
        pytest.param(True, WorkerExitCode.STOPPED, False, id="asked to end, and has ended"),
        pytest.param(True, WorkerExitCode.FAILED, False, id="asked to end, and has failed"),
    ],
)
def test_only_who_ends_by_itself_asks_to_be_restarted(
    world: World, is_asked_to_end: bool, code: int, broken: bool
) -> None:
    world.invariants.check_exit(WORKER, code, is_asked_to_end=is_asked_to_end)
    expected = ["who is asked to end ends"] if broken else []
    assert [one.promise for one in world.invariants.violations] == expected
