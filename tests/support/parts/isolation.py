"""Attempts of handlers with processes of their own: started, watched, stopped."""

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from asyncjob import WorkerApp
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob_worker.execution.attempt import Attempt
from asyncjob_worker.execution.attempt_waits import MayPark
from asyncjob_worker.execution.children.awaited_children import AttemptChildren
from asyncjob_worker.isolation.executor import HandlerExecutor
from asyncjob_worker.isolation.pool import ProcessPool
from asyncjob_worker.isolation.protocol import ProcessConfig
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.settings import Settings
from support.apps.isolated import app
from support.parts.callbacks import ignore, no_children
from support.parts.worker_parts import attempt_services, held, never_park

T = TypeVar("T")

TARGET = "support.apps.isolated:app"
PATIENCE = 20.0


def begin_with(target: str = TARGET, **changes: Any) -> ProcessConfig:
    """Return what a child under test is told first."""
    return ProcessConfig(target, list(sys.path), **changes)


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def is_left(pid: int) -> bool:
    """Return whether there is anything of a process, be it a zombie."""
    return Path(f"/proc/{pid}").exists()


async def until(probe: Callable[[], T | None], what: str) -> T:
    """Return the first true answer of the probe."""
    give_up_at = time.monotonic() + PATIENCE
    while not (answer := probe()):
        assert time.monotonic() < give_up_at, f"not in time: {what}"
        await asyncio.sleep(0.01)
    return answer


def job(type_: str, payload: Any = None, **changes: Any) -> HeldJob:
    """Return a job that we hold, of a type of the app under test."""
    spec = {"type": type_, **({} if payload is None else {"payload": payload})}
    return held(spec={**spec, **changes.pop("spec", {})}, **changes)


class IsolatedAttempts:
    """What runs attempts in processes; `pool` has these."""

    def __init__(
        self,
        *,
        most: int = 2,
        jobs_each: int = 0,
        begin: ProcessConfig | None = None,
        app: WorkerApp = app,
        children: Callable[[HeldJob], AttemptChildren] = no_children,
        may_park: MayPark = never_park,
        **settings: Any,
    ) -> None:
        self.settings = Settings(**{"app": TARGET, "stop_grace_seconds": PATIENCE, **settings})
        self.pool = ProcessPool(begin or begin_with(), most, jobs_per_process=jobs_each)
        starts = HandlerExecutor(1, self.pool)
        shared = attempt_services(self.settings, may_park=may_park)
        self.tools = replace(shared, executor=starts, children=children)
        self.app = app

    async def run(self, of: HeldJob) -> PhaseChange | None:
        """Run a job to its outcome."""
        handler = self.app.handlers[of.job.type]
        return await Attempt(
            of, handler, self.app, self.settings, self.tools, on_start=ignore
        ).run()

    async def result(self, type_: str, payload: Any = None) -> Any:
        """Run a job that succeeds; return its result."""
        move = await self.run(job(type_, payload))
        assert move
        assert move.target == "Succeeded", move
        return move.fields["result"]

    async def begin(
        self, of: HeldJob, folder: Path
    ) -> tuple["asyncio.Task[PhaseChange | None]", int]:
        """Start a job that leaves a file when it has begun; return it and its process."""
        task = asyncio.ensure_future(self.run(of))
        started = folder / "started"
        await until(started.exists, "the handler has begun")
        return task, int(started.read_text())

    async def close(self) -> None:
        """End all processes."""
        await self.tools.executor.end_processes()
        self.tools.executor.close()
