"""Handlers that take steps, sleep and wait for signals, and what they note of that themselves.

Their notes are what no API server can know: when the body of a step ran, what its caller got, and
what a handler was told of a signal.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from asyncjob import WorkerApp
from asyncjob.app import SignalTimeout
from asyncjob.app.context import JobContext
from asyncjob.names import GROUP, JOBS
from asyncjob_simulation.apiserver import ApiServer
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import HandlerCalls, RecordedCall

Object = dict[str, Any]

STEPPING: Final = "stepping"
"""The type of these jobs. Their payload lists what their handler does, one after the other."""

STEP: Final = "step"
SLEEP: Final = "sleep"
SIGNAL: Final = "signal"
BOTH: Final = "both"
"""A wait for a signal beside a step: while its body runs the job cannot be parked."""

TIMED_OUT: Final = "timed out"

ONE_RUN: Final = "a step that is stored is not taken again"
SAME_RESULT: Final = "a step gives what is stored, each time the same"
SAME_ANSWER: Final = "a wait for a signal comes to the same each time"

NO_EVENT: Final[Callable[[str, str, float | None], None]] = lambda *_: None  # noqa: E731


@dataclass
class StepRecord:
    """What all such handlers have noted, by UID of the job and key of the step or signal."""

    calls: HandlerCalls
    server: ApiServer
    count: Callable[[str], None]
    bodies: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    """How often the body of a step was begun."""

    over: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    """What bodies of a step have returned."""

    given: dict[tuple[str, str], str] = field(default_factory=dict)
    """What the handler got for a step."""

    answers: dict[tuple[str, str], str] = field(default_factory=dict)
    """What the handler got for a signal, or that it has timed out."""

    on_wait: Callable[[str, str, float | None], None] = NO_EVENT
    """Called with job, signal and limit as a handler begins to wait for one."""

    def job(self, name: str, uid: str) -> Object | None:
        """Return a job as it is stored, None if it is gone."""
        found = self.server.storage.get((GROUP, JOBS), (NAMESPACE, name))
        return found if found is not None and found["metadata"]["uid"] == uid else None

    def is_current(self, run: RecordedCall) -> bool:
        """Return whether a handler is the newest of its job, and not one whose process hung."""
        newest = self.calls.runs[run.uid][-1].attempt
        return run.attempt == newest and not run.stood_still(self.calls.loop.time())

    def begin_body(self, run: RecordedCall, key: str) -> str:
        """Note that the body of a step begins, and return what it is to return."""
        job = self.job(run.name, run.uid)
        if job is not None and key in (job["status"].get("steps") or {}) and self.is_current(run):
            self._wrong(ONE_RUN, run, f"{key} is taken by attempt {run.attempt}, and is stored")
        self.bodies[run.uid, key] += 1
        if self.bodies[run.uid, key] > 1:
            self.count("step again")
        return f"{key} of attempt {run.attempt}, body {self.bodies[run.uid, key]}"

    def take(self, run: RecordedCall, key: str, value: str) -> None:
        """Note what the handler got for a step."""
        job, kept = self.job(run.name, run.uid), None
        if job is not None:
            kept = ((job["status"].get("steps") or {}).get(key) or {}).get("result")
        before = self.given.setdefault((run.uid, key), value)
        if value != before:
            self._wrong(SAME_RESULT, run, f"{key} gave {before!r}, and now {value!r}")
        elif job is not None and value != kept:
            self._wrong(SAME_RESULT, run, f"{key} gives {value!r}, and {kept!r} is stored")

    def answer(self, run: RecordedCall, name: str, told: str) -> None:
        """Note what the handler got for a signal."""
        before = self.answers.setdefault((run.uid, name), told)
        job = self.job(run.name, run.uid)
        sent = (job["spec"].get("signals") or {}).get(name) if job is not None else None
        if told != before:
            self._wrong(SAME_ANSWER, run, f"{name} came to {before!r}, and now to {told!r}")
        elif job is not None and told != (sent["payload"] if sent else TIMED_OUT):
            self._wrong(SAME_ANSWER, run, f"{name} comes to {told!r}, and {sent} was sent")
        self.count("signal timed out" if told == TIMED_OUT else "signal received")

    def forget_time_outs(self, uid: str) -> None:
        """Forget which signals of a job have timed out: it is redriven."""
        for place in [one for one, told in self.answers.items() if told == TIMED_OUT]:
            if place[0] == uid:
                del self.answers[place]

    def _wrong(self, promise: str, run: RecordedCall, words: str) -> None:
        self.calls.problems.append((promise, run.name, words))


class _Attempt:
    """One attempt of one job."""

    def __init__(self, record: StepRecord, run: RecordedCall, job: JobContext) -> None:
        self._stepping = record
        self._run = run
        self._job = job

    async def act(self, kind: str, key: str, seconds: float | None) -> None:
        """Do one thing."""
        if kind == STEP:
            await self._step(key, seconds or 0.0)
        elif kind == SLEEP:
            await self._stepping.calls.sleep(self._job, key, seconds or 0.0)
        elif kind == SIGNAL:
            await self._signal(key, seconds)
        else:
            await asyncio.gather(self._signal(key, seconds), self._step(f"{key} meanwhile", 6.0))

    async def _step(self, key: str, seconds: float) -> None:
        async def body() -> str:
            value = self._stepping.begin_body(self._run, key)
            await asyncio.sleep(seconds)
            self._stepping.calls.step(self._run)
            self._stepping.over[self._run.uid, key].add(value)
            return value

        self._stepping.take(self._run, key, await self._job.step(key, body))

    async def _signal(self, name: str, seconds: float | None) -> None:
        self._stepping.on_wait(self._job.name, name, seconds)
        limit = None if seconds is None else timedelta(seconds=seconds)
        try:
            told = str(await self._job.signal(name, timeout=limit))
        except SignalTimeout:
            told = TIMED_OUT
        self._stepping.answer(self._run, name, told)


def add_step_handlers(app: WorkerApp, record: StepRecord) -> None:
    """Have an app run such jobs as well."""

    @app.handler(STEPPING)
    async def stepping(job: JobContext, payload: Any) -> Any:
        run, returned = record.calls.begin(job), False
        try:
            one = _Attempt(record, run, job)
            fails = job.attempt <= payload["failures"]
            for number, act in enumerate(payload["acts"]):
                if fails and number == payload["failsAt"]:
                    raise RuntimeError("fails as its payload says")
                await one.act(*act)
            returned = True
            return {"by": job.fencing_token}
        finally:
            record.calls.end(run, returned=returned)


def signals_in(payload: Object) -> list[str]:
    """Return the names of the signals that such a job waits for."""
    return [act[1] for act in payload.get("acts") or () if act[0] in {SIGNAL, BOTH}]
