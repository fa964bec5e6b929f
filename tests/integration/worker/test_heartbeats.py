"""The heartbeat thread against a real API server, and what happens without it."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob import JobContext, WorkerApp
from asyncjob.errors import UnknownOutcomeError
from asyncjob.kube import KubeSession
from asyncjob_worker.leases.heartbeat import HeartbeatThread
from support.processes.inside import all_done, team
from support.processes.workers import WorkerNamespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def waiting_app(gate: asyncio.Event) -> WorkerApp:
    app = WorkerApp()

    @app.handler("wait")
    async def wait(job: JobContext) -> str:
        await gate.wait()
        return "waited"

    return app


async def until_running(ns: WorkerNamespace, name: str) -> dict[str, Any]:
    status: dict[str, Any] = await asyncio.to_thread(ns.until_phase, name, "Running")
    return status


async def test_a_worker_whose_heartbeat_thread_has_died_gives_its_jobs_back_and_restarts(
    ns: WorkerNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies = asyncio.Event()
    monkeypatch.setattr(HeartbeatThread, "alive", property(lambda _: not dies.is_set()))
    async with team(waiting_app(asyncio.Event()), [ns.identity("inside")], concurrency=1) as people:
        await asyncio.to_thread(ns.create, "j", "wait")
        await until_running(ns, "j")
        dies.set()
        assert await people.running[0] is False
    status = await asyncio.to_thread(ns.status, "j")
    assert (status["phase"], status["reason"]) == ("Queued", "Released")
    assert (status.get("releases", 0), status.get("crashes", 0)) == (1, 0)


async def test_a_heartbeat_that_took_effect_without_an_answer_costs_nothing(
    ns: WorkerNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = 2
    send = KubeSession.json_patch

    async def lossy(self: KubeSession, path: str, operations: Any, **more: Any) -> Any:
        nonlocal lost
        answer = await send(self, path, operations, **more)
        is_renewal = any(item["path"] == "/status/lease/renewals" for item in operations)
        if is_renewal and lost:
            lost -= 1
            await asyncio.Event().wait()
        return answer

    monkeypatch.setattr(KubeSession, "json_patch", lossy)
    gate = asyncio.Event()
    async with team(waiting_app(gate), [ns.identity("inside")], concurrency=1):
        await asyncio.to_thread(ns.create, "j", "wait", leaseDurationSeconds=6)
        await asyncio.to_thread(
            ns.until_status, "j", lambda found: found.get("lease", {}).get("renewals", 0) >= 3
        )
        gate.set()
        (status,) = await all_done(ns, ["j"])
    assert not lost
    assert (status["phase"], status["attempt"], status.get("crashes", 0)) == ("Succeeded", 1, 0)


async def test_a_result_is_tried_until_the_lease_is_lost_and_then_given_up_aloud(
    ns: WorkerNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the sessions of this process are cut off: the worker process goes on."""
    cut_off, ended = asyncio.Event(), asyncio.Event()
    app = WorkerApp()

    @app.handler("echo")
    async def echo(job: JobContext) -> str:
        cut_off.set()
        ended.set()
        return "too late"

    for verb in ("get", "json_patch"):
        monkeypatch.setattr(KubeSession, verb, failing(getattr(KubeSession, verb), cut_off))
    with capture_logs() as logs:
        async with team(app, [ns.identity("inside")], concurrency=1) as people:
            spec = {"leaseDurationSeconds": 5, "retryPolicy": {"initialDelaySeconds": 0}}
            await asyncio.to_thread(ns.create, "j", "echo", "second", **spec)
            await ended.wait()
            await asyncio.to_thread(ns.worker, "worker-1")
            before = await asyncio.to_thread(ns.until_phase, "j", "Succeeded")
            assert people.workers[0]._components.runner.running
            cut_off.clear()
            await people.until_idle()
        after = await asyncio.to_thread(ns.status, "j")
    tries = [entry for entry in logs if entry["event"] == "outcome not stored yet"]
    given_up = [entry for entry in logs if "outcome not written" in entry["event"]]
    assert len(tries) >= 3
    assert [(entry["job"], entry["outcome"]) for entry in given_up] == [("j", "Succeeded")]
    assert after == before
    assert (after["attempt"], after.get("crashes", 0), after["result"]) == (2, 1, "second")


def failing(send: Any, cut_off: asyncio.Event) -> Any:
    """Return a request that gets no answer, and has no effect, while cut off."""

    async def maybe(self: KubeSession, *arguments: Any, **more: Any) -> Any:
        if cut_off.is_set():
            raise UnknownOutcomeError("cut off")
        return await send(self, *arguments, **more)

    return maybe
