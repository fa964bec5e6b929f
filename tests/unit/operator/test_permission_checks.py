"""How permissions are asked for: all of them, few at a time, and again if no answer comes."""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import MAX_OUTAGE_BACKOFF
from asyncjob_operator import startup_checks
from asyncjob_operator.core.permissions import CORE
from asyncjob_operator.kube.preflight import (
    CONCURRENT_REQUESTS,
    MAX_TRIES,
    check_permissions,
    preflight,
)
from asyncjob_operator.settings import Settings
from asyncjob_operator.startup_checks import required_permissions, wait_for_prerequisites
from asyncjob_simulation.apiserver import Call, Fault, MemoryAccess, MemoryConnections
from asyncjob_simulation.event_loop import SimulationLoop
from support.in_memory.memory import memory_server


class Reviews:
    """Grants all but one verb in one namespace, and notes how many are under way."""

    def __init__(self) -> None:
        self.under_way = self.most = self.asked = 0

    async def create(self, _path: str, body: Any) -> Any:
        self.under_way, self.asked = self.under_way + 1, self.asked + 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        attributes = body["spec"]["resourceAttributes"]
        is_denied = (attributes["namespace"], attributes["verb"]) == ("n-77", "operate")
        return {"status": {"allowed": not is_denied}}


async def test_hundreds_of_namespaces_are_asked_about_a_few_reviews_at_a_time() -> None:
    reviews = Reviews()
    asked = [(permission, f"n-{number}") for number in range(100) for permission in CORE]
    findings = await check_permissions(cast("KubeSession", reviews), asked)
    assert reviews.asked == len(asked)
    assert reviews.most == CONCURRENT_REQUESTS
    [line] = findings.errors
    assert "operate" in line
    assert "n-77" in line


LATENCY = 0.2


class Network:
    """Loses the first answers to each request; `back_at`: when any answer comes at all."""

    def __init__(self, lost: int = 0, back_at: float = 0.0) -> None:
        self.loop = SimulationLoop(random.Random(5))
        self.tries: dict[tuple[str, bytes], list[float]] = {}
        self._lost, self._back_at = lost, self.loop.time() + back_at

    def on_request(self, call: Call) -> Fault:
        tries = self.tries.setdefault((call.path, call.body), [])
        tries.append(self.loop.time())
        is_lost = len(tries) <= self._lost or self.loop.time() < self._back_at
        return Fault(before=LATENCY, lost="after" if is_lost else "")

    def on_event(self, call: Call, type_: str, version: int) -> Fault:  # noqa: ARG002
        return Fault()

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        try:
            self.loop.run_until_complete(story)
        finally:
            self.loop.close()

    def open(self) -> KubeSession:
        server = memory_server(self.loop.time)
        access = MemoryAccess(MemoryConnections(server, self), server.admin_token)
        return KubeSession(access, field_manager="operator")


ASKED = required_permissions(Settings(), "default")


def test_a_lost_answer_is_asked_for_again_and_does_not_count_as_missing() -> None:
    network = Network(lost=MAX_TRIES - 1)

    async def story() -> None:
        async with network.open() as session:
            findings = await preflight(session, ASKED)
        assert (findings.errors, findings.warnings, findings.missing_policies) == ([], [], [])
        assert min(map(len, network.tries.values())) == MAX_TRIES

    network.run(story())


def test_all_is_asked_for_at_once_and_not_one_after_another() -> None:
    network = Network()

    async def story() -> None:
        began = network.loop.time()
        async with network.open() as session:
            assert (await preflight(session, ASKED)).errors == []
        assert len(network.tries) > 20
        assert network.loop.time() - began < 4 * LATENCY

    network.run(story())


def test_after_an_outage_it_is_asked_again_soon_and_said_once_a_minute() -> None:
    network = Network(back_at=300.0)

    async def story() -> None:
        async with network.open() as session:
            began = network.loop.time()
            with capture_logs() as logs:
                await wait_for_prerequisites(session, Settings())
        took = network.loop.time() - began
        assert 300.0 <= took <= 300.0 + MAX_OUTAGE_BACKOFF + 5.0
        said = [entry for entry in logs if entry["event"] == "cannot work yet"]
        assert 4 <= len(said) <= 6

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(startup_checks, "monotonic", network.loop.time)
        network.run(story())
