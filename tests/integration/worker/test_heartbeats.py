"""The heartbeat thread against a real API server, and what happens without it."""

import asyncio
from typing import Any

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.kube import KubeSession
from asyncjob_worker.keeper import Keeper
from support.inside import all_done, team
from support.workers import Field

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def waiting_app(gate: asyncio.Event) -> WorkerApp:
    app = WorkerApp()

    @app.handler("wait")
    async def wait(job: JobContext) -> str:
        await gate.wait()
        return "waited"

    return app


async def until_running(field: Field, name: str) -> dict[str, Any]:
    status: dict[str, Any] = await asyncio.to_thread(field.until_phase, name, "Running")
    return status


async def test_a_worker_whose_heartbeat_thread_has_died_gives_its_jobs_back_and_restarts(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies = asyncio.Event()
    monkeypatch.setattr(Keeper, "alive", property(lambda _: not dies.is_set()))
    async with team(
        waiting_app(asyncio.Event()), [field.identity("inside")], concurrency=1
    ) as people:
        await asyncio.to_thread(field.create, "j", "wait")
        await until_running(field, "j")
        dies.set()
        assert await people.running[0] is False
    status = await asyncio.to_thread(field.status, "j")
    assert (status["phase"], status["reason"]) == ("Queued", "Released")
    assert (status["releases"], status["crashes"]) == (1, 0)


async def test_a_heartbeat_that_took_effect_without_an_answer_costs_nothing(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = 2
    send = KubeSession.json_patch

    async def lossy(self: KubeSession, path: str, operations: Any) -> Any:
        nonlocal lost
        answer = await send(self, path, operations)
        is_renewal = any(item["path"] == "/status/lease/renewals" for item in operations)
        if is_renewal and lost:
            lost -= 1
            await asyncio.Event().wait()
        return answer

    monkeypatch.setattr(KubeSession, "json_patch", lossy)
    gate = asyncio.Event()
    async with team(waiting_app(gate), [field.identity("inside")], concurrency=1):
        await asyncio.to_thread(field.create, "j", "wait", leaseDurationSeconds=6)
        await asyncio.to_thread(
            field.until_status, "j", lambda found: found.get("lease", {}).get("renewals", 0) >= 3
        )
        gate.set()
        (status,) = await all_done(field, ["j"])
    assert not lost
    assert (status["phase"], status["attempt"], status["crashes"]) == ("Succeeded", 1, 0)
