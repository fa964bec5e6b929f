"""The handlers of simulated workers, and what they write down by themselves.

Their record is what no API server can know: when a handler's code really ran, and where.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob import WorkerApp
from asyncjob.app import JobContext
from asyncjob_simulation.event_loop import SimulationLoop
from asyncjob_simulation.processes import HEARTBEAT, MAIN, Process, current_process

FENCING_SECONDS: Final = 1.5
"""How long the handler of a process that stood still may go on before it is stopped."""

ISOLATED: Final = "isolated"
"""A type of jobs whose handler runs in a process of its own."""

WAITS: Final = "waits"
BLOCKS: Final = "blocks"
"""How a handler hangs: it waits for what never comes, or has the thread that it runs in."""

HANG_SECONDS: Final = 300.0
"""How long the latter lasts: far longer than such jobs may take."""

RARE: Final = "rare"
"""A type of jobs that one worker of a queue serves alone."""


@dataclass(eq=False, slots=True)
class RecordedCall:
    """One call of a handler."""

    uid: str
    name: str
    attempt: int
    process: Process
    began: float
    heeds_stops: bool = True
    """Whether it ends when it is asked to; else the worker cannot help that it goes on."""

    ended: float | None = None
    returned: bool = False

    @property
    def is_running(self) -> bool:
        """Whether its code may still go on."""
        return self.ended is None and self.process.is_alive

    @property
    def can_be_stopped(self) -> bool:
        """Whether its worker can end it: it heeds stops, or has a process that can be killed."""
        return self.heeds_stops or self.process is not self.process.container

    def stood_still(self, now: float) -> bool:
        """Return whether who runs or stops it stands still, or did a moment ago."""
        process, container = self.process, self.process.container
        if process.stood_still(now, FENCING_SECONDS, MAIN):
            return True
        # Either thread of a worker stops what runs in a process of its own.
        return process is not container and container.stood_still(
            now, FENCING_SECONDS, MAIN, HEARTBEAT
        )


@dataclass
class HandlerCalls:
    """All calls of handlers, and what is wrong with them."""

    loop: SimulationLoop
    runs: dict[str, list[RecordedCall]] = field(default_factory=lambda: defaultdict(list))
    problems: list[tuple[str, str, str]] = field(default_factory=list)
    """The promise that was broken, name of the job, and what is wrong."""

    sleeps: dict[tuple[str, str], float] = field(default_factory=dict)
    """When each sleep of each job was first asked for, by UID and key."""

    on_begin: Callable[[RecordedCall], None] = lambda _: None
    """Called with each new run."""

    after_stubborn: list[Callable[[Process], None]] = field(default_factory=list)
    """What happens once the next handler begins that ignores its stops, to its container."""

    on_step: Callable[[RecordedCall], None] = lambda _: None
    """Called whenever one does something that others can see."""

    def begin(self, job: JobContext, *, heeds_stops: bool = True) -> RecordedCall:
        """Note that a handler begins."""
        process = current_process()
        assert process is not None  # handlers run in workers only
        claims = job.info.attempt  # `job.attempt` leaves parks out
        run = RecordedCall(job.uid, job.name, claims, process, self.loop.time(), heeds_stops)
        for other in self.runs[job.uid]:
            if other.attempt == run.attempt:
                self._wrong(run, f"attempt {run.attempt} runs a second time")
            elif other.is_running and other.heeds_stops and not other.stood_still(run.began):
                self._wrong(run, f"runs in {process.name} while {_words(other)} has not ended")
        self.runs[job.uid].append(run)
        self.on_begin(run)
        if not heeds_stops and self.after_stubborn:
            self.after_stubborn.pop(0)(process.container)
        return run

    def step(self, run: RecordedCall) -> None:
        """Note that a handler does something that others can see."""
        now = self.loop.time()
        newer = [one for one in self.runs[run.uid] if one.attempt > run.attempt]
        if newer and run.heeds_stops and not run.stood_still(now):
            self._wrong(run, f"{_words(run)} goes on after {_words(newer[0])} has begun")
        self.on_step(run)

    async def sleep(self, job: JobContext, key: str, seconds: float) -> None:
        """Sleep without a slot, if at all, and judge the time since this sleep was first begun."""
        if not seconds:
            return
        began = self.sleeps.setdefault((job.uid, key), self.loop.time())
        await job.sleep(key, seconds=seconds)
        if (slept := self.loop.time() - began) < seconds:
            words = f"slept for {slept:.2f} s and not {seconds:.2f} s ({key})"
            self.problems.append(("a sleep lasts as long as asked", job.name, words))

    def end(self, run: RecordedCall, *, returned: bool) -> None:
        """Note that a handler has ended."""
        run.ended, run.returned = self.loop.time(), returned

    def containers(self) -> list[Process]:
        """Return the first processes of the containers in which handlers run, each once."""
        running = [run for runs in self.runs.values() for run in runs if run.is_running]
        return list(dict.fromkeys(run.process.container for run in running))

    def _wrong(self, run: RecordedCall, words: str) -> None:
        self.problems.append(("one handler at a time", run.name, words))


def _words(run: RecordedCall) -> str:
    return f"attempt {run.attempt} in {run.process.name}"


async def _pause(seconds: float, *, heeds_stops: bool) -> None:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        if heeds_stops:
            raise
        await asyncio.sleep(seconds)


async def _hang_if_asked(job: JobContext, how: str | None, process: Process) -> None:
    """Never return from a first attempt that is to hang; what it has blocked goes on some time."""
    if how is None or job.attempt > 1:
        return
    if how == BLOCKS:
        process.block(HANG_SECONDS)
    await asyncio.Event().wait()


def make_app(record: HandlerCalls, *, serves_rare: bool = False) -> WorkerApp:
    """Return an app whose handlers do as their payload says, maybe with one more type of jobs."""
    app = WorkerApp()

    async def work(job: JobContext, payload: Any) -> Any:
        heeds_stops = job.attempt > payload.get("ignoresStops", 0)
        run = record.begin(job, heeds_stops=heeds_stops)
        returned = False
        try:
            await _hang_if_asked(job, payload.get("hangs"), run.process)
            first = (job.last_checkpoint or {}).get("step", 0)
            fails = job.attempt <= payload["failures"]
            for step in range(first, payload["failsAt"] if fails else payload["steps"]):
                await record.sleep(job, f"before {step}", payload.get("nap", 0.0))
                await _pause(payload["pause"], heeds_stops=heeds_stops)
                record.step(run)
                if payload.get("checkpoint"):
                    job.checkpoint({"step": step + 1, "attempt": job.info.attempt})
                    job.progress(100 * (step + 1) / payload["steps"])
            if fails:
                raise RuntimeError("fails as its payload says")
            returned = True
            return {"by": job.fencing_token}
        finally:
            record.end(run, returned=returned)

    app.handler("work")(work)
    app.handler(ISOLATED, isolation="process")(work)
    if serves_rare:
        app.handler(RARE)(work)

    @app.handler("parent")
    async def parent(job: JobContext, payload: Any) -> Any:
        run = record.begin(job)
        returned = False
        try:
            for number in range(payload["children"]):
                child = {"steps": 1, "pause": payload["pause"], "failures": 0}
                await job.submit("work", child, key=str(number))
                record.step(run)
            returned = True
            return {"by": job.fencing_token}
        finally:
            record.end(run, returned=returned)

    return app
