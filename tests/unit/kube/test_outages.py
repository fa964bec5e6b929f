"""Many informers at an API server that is away, comes back, or asks to slow down."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from asyncjob.errors import ApiError, ThrottledError, UnknownOutcomeError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession, WatchEvent
from asyncjob.kube.informer import UNOBSERVED, run_informer
from asyncjob.kube.pacing import (
    HEALTHY_ROUND_SECONDS,
    MAX_OUTAGE_BACKOFF,
    MAX_RETRY_AFTER,
    RoundPacer,
    retry_after_delay,
)
from asyncjob.kube.transport import error_from_response
from asyncjob.names import JOBS, collection_path
from asyncjob_simulation.apiserver import Call, Fault, MemoryAccess, MemoryConnections
from asyncjob_simulation.apiserver.faults import NO_FAULT
from asyncjob_simulation.event_loop import SimulationLoop
from support.in_memory.memory import memory_server
from support.objects.builders import job

PATH = collection_path("default", JOBS)
CLIENTS = 100
LATENCY = 0.02


class ServerFaults:
    """What becomes of each request, as of a moment; notes who asked when."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.fault = NO_FAULT
        self.cut = False
        self.asked: list[tuple[str, float]] = []

    def on_request(self, call: Call) -> Fault:
        self.asked.append((call.user_agent, self._now()))
        return self.fault

    def on_event(self, call: Call, type_: str, version: int) -> Fault:  # noqa: ARG002
        return Fault(breaks=True) if self.cut else NO_FAULT

    def asked_since(self, moment: float) -> list[float]:
        return [at for _, at in self.asked if at >= moment]


class Crowd:
    """So many clients, each with a session and an informer of its own, in virtual time."""

    def __init__(self, loop: SimulationLoop) -> None:
        self.loop = loop
        self.server = memory_server(loop.time)
        self.faults = ServerFaults(loop.time)
        self.connections = MemoryConnections(self.server, self.faults)
        self.listed: list[float] = []
        self.seen: list[float] = []

    def open(self, name: str) -> KubeSession:
        access = MemoryAccess(self.connections, self.server.admin_token)
        return KubeSession(access, field_manager=name)

    @asynccontextmanager
    async def following(self) -> AsyncGenerator[None]:
        sessions = [self.open(f"client-{number}") for number in range(CLIENTS)]
        tasks = [
            asyncio.ensure_future(run_informer(one, PATH, self, observer=UNOBSERVED))
            for one in sessions
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for session in sessions:
                await session.close()

    async def create(self, name: str) -> None:
        """Create a job by a way that is always there."""
        async with KubeSession(
            MemoryAccess(MemoryConnections(self.server), self.server.admin_token),
            field_manager="user",
        ) as user:
            await user.create(PATH, job(name))

    def replace(self, objects: Sequence[JsonObject]) -> None:  # noqa: ARG002
        self.listed.append(self.loop.time())

    def apply(self, event: WatchEvent) -> None:  # noqa: ARG002
        self.seen.append(self.loop.time())


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    loop = SimulationLoop(random.Random(3))
    yield Crowd(loop)
    loop.close()


AWAY = Fault(before=LATENCY, lost="before")


def test_all_are_back_ten_seconds_after_an_outage_and_not_all_at_once(crowd: Crowd) -> None:
    async def story() -> None:
        crowd.faults.fault = AWAY
        async with crowd.following():
            await asyncio.sleep(600.0)
            before = len(crowd.faults.asked)
            await asyncio.sleep(300.0)
            tries = len(crowd.faults.asked) - before
            assert tries <= CLIENTS * 300.0 / (MAX_OUTAGE_BACKOFF / 2)
            back_at = crowd.loop.time()
            crowd.faults.fault = NO_FAULT
            await asyncio.sleep(MAX_OUTAGE_BACKOFF + 1.0)
        assert len(crowd.listed) == CLIENTS
        assert max(crowd.listed) - back_at <= MAX_OUTAGE_BACKOFF + 1.0
        by_second = Counter(int(at - back_at) for at in crowd.listed)
        assert max(by_second.values()) <= CLIENTS / 3

    crowd.loop.run_until_complete(story())


def test_watches_that_broke_off_in_an_outage_see_what_came_ten_seconds_after_it(
    crowd: Crowd,
) -> None:
    async def story() -> None:
        async with crowd.following():
            await asyncio.sleep(60.0)
            assert len(crowd.listed) == CLIENTS
            crowd.faults.fault, crowd.faults.cut = AWAY, True
            await crowd.create("breaks-the-watches")
            await asyncio.sleep(120.0)
            crowd.faults.fault, crowd.faults.cut = NO_FAULT, False
            listed_before = len(crowd.listed)
            await asyncio.sleep(MAX_OUTAGE_BACKOFF + 1.0)
            back = len(crowd.listed) - listed_before + len(crowd.seen)
        assert back >= CLIENTS

    crowd.loop.run_until_complete(story())


def test_all_wait_as_long_as_the_server_asks_and_do_not_come_back_together(crowd: Crowd) -> None:
    """Watches are not asked for again by the transport itself."""

    async def story() -> None:
        async with crowd.following():
            await asyncio.sleep(60.0)
            crowd.faults.cut = True
            crowd.faults.fault = Fault(before=LATENCY, status=429, retry_after=8)
            await crowd.create("breaks-the-watches")
            cut_at = crowd.loop.time()
            await asyncio.sleep(25.0)
        first = sorted(crowd.faults.asked_since(cut_at))[:CLIENTS]
        by_client: dict[str, list[float]] = {}
        for client, at in crowd.faults.asked:
            if at >= cut_at:
                by_client.setdefault(client, []).append(at)
        waits = [
            later - sooner for times in by_client.values() for sooner, later in pairwise(times)
        ]
        assert first[-1] - first[0] > 0.3  # a watch that broke off is tried again after 0.5 to 1 s
        assert min(waits) >= 8.0
        assert max(waits) - min(waits) > 2.0

    crowd.loop.run_until_complete(story())


@pytest.mark.parametrize("code", [429, 503])
def test_what_the_server_asks_for_is_a_floor_for_the_pause_and_has_an_end(code: int) -> None:
    pace = RoundPacer(lambda: 0.0)
    error = error_from_response(code, b"{}", "7")
    assert isinstance(error, ThrottledError | UnknownOutcomeError)
    assert pace.next_delay(error) >= 7.0
    assert all(
        MAX_RETRY_AFTER <= retry_after_delay(9999.0) <= 1.5 * MAX_RETRY_AFTER for _ in range(50)
    )


def test_a_watch_that_has_lived_begins_with_short_pauses_again() -> None:
    now = 0.0
    pace = RoundPacer(lambda: now)
    away = ApiError("away")
    for _ in range(10):
        pace.start_round()
        assert pace.next_delay(away) <= MAX_OUTAGE_BACKOFF
    pace.start_round()
    now += HEALTHY_ROUND_SECONDS
    assert pace.next_delay(away) <= 1.0
