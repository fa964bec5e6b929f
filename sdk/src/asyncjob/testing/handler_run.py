"""`run_handler`.

The shortest way to a handler's unit test, and `HandlerRun`, one attempt as the test sees it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from types import TracebackType
from typing import Any, Final, ParamSpec

from asyncjob.app import WorkerApp
from asyncjob.app.context import Stop
from asyncjob.free_json import MAX_STORED_BYTES, normalize
from asyncjob.json_types import Json, as_object, opt_integer, opt_text
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.models.job_status import JobError
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.cluster import FakeCluster
from asyncjob.testing.errors import StuckError, TestKitError
from asyncjob.testing.job import FakeJob, send_signal
from asyncjob.testing.manifests import build_job_manifest
from asyncjob.testing.steps import given_steps


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the worker reports of an attempt. `retry_after` is the backoff, in seconds."""

    phase: Phase
    reason: Reason | None
    message: str | None
    error: JobError | None
    retry_after: float | None


class HandlerRun:
    """One attempt. What it tells is always of now."""

    def __init__(self, cluster: FakeCluster, job: FakeJob) -> None:
        self._cluster = cluster
        self.job = job
        self._attempt = cluster.simulator.attempt_of(job.record)
        self._given_steps = frozenset(job.steps)

    @property
    def progress(self) -> list[tuple[int, str | None]]:
        """What the handler reported, in order: percent and message."""
        values = map(as_object, self._values("progress"))
        return [
            (opt_integer(value, "percent") or 0, opt_text(value, "message")) for value in values
        ]

    @property
    def checkpoints(self) -> list[Json]:
        """What the handler saved, in order."""
        return self._values("checkpoint")

    @property
    def steps(self) -> Mapping[str, Json]:
        """The results of the steps that this attempt has taken, by key, in order."""
        return {key: value for key, value in self.job.steps.items() if key not in self._given_steps}

    @property
    def result(self) -> Json:
        """What the handler returned, as it is stored; None unless it succeeded."""
        return self.job.result

    @property
    def children(self) -> Sequence[FakeJob]:
        """The jobs that the handler has submitted; they run in the same fake cluster."""
        return self.job.children

    @property
    def error(self) -> BaseException | None:
        """What the handler raised, or what was wrong with its payload."""
        return self._attempt.error

    @property
    def finished(self) -> bool:
        """Whether the outcome is decided."""
        return self.job.phase is not Phase.RUNNING

    @property
    def outcome(self) -> Outcome:
        """The outcome as the worker reports it; raises TestKitError while there is none."""
        if not self.finished:
            raise TestKitError("the handler is still at work: leave the `async with` block first")
        status = self.job.status
        return Outcome(
            status.phase, status.reason, status.message, status.error, status.retry_delay_seconds
        )

    @property
    def clock(self) -> FakeClock:
        """The clock that the handler sees."""
        return self._cluster.clock

    # ---- what happens to it

    async def until(self, condition: Callable[[], object]) -> None:
        """Let the handler work until the condition holds; looked at after each report.

        Raises StuckError if the handler ends without it.
        """
        await self._cluster.run_until(lambda: self.finished or condition())
        if not condition():
            raise StuckError(f"the condition does not hold, and the handler has ended; {self.job}")

    async def cancel(self) -> None:
        """Cancel the job: the handler is asked to stop."""
        await self.job.cancel()

    async def drain(self) -> None:
        """Let the worker shut down, its grace period over: the handler is asked to stop."""
        self._attempt.stop(Stop.DRAINING)

    async def time_out(self) -> None:
        """Let the attempt's time limit pass, or the job's deadline if that is sooner.

        The handler is asked to stop.
        """
        self._let_time_run_out()

    async def pass_deadline(self) -> None:
        """Let the job's deadline pass: the handler is asked to stop.

        Raises TestKitError if the job has none, or if the attempt's time limit comes first.
        """
        if self._attempt.stop_at_end is not Stop.PAST_DEADLINE:
            raise TestKitError("the attempt's time limit comes first: give a sooner `deadline`")
        self._let_time_run_out()

    def _let_time_run_out(self) -> None:
        self.clock.move_to(max(self.clock.elapsed, self._attempt.ends_at))
        self._attempt.stop(self._attempt.stop_at_end)

    async def stop(self, why: Stop) -> None:
        """Tell the handler to stop: cancelled, timed out, past its deadline or draining."""
        match why:
            case Stop.CANCELLED:
                await self.cancel()
            case Stop.TIMED_OUT:
                await self.time_out()
            case Stop.PAST_DEADLINE:
                await self.pass_deadline()
            case Stop.DRAINING:
                await self.drain()
            case _:
                raise TestKitError(
                    f"invalid stop {why!r}: use Stop.CANCELLED, Stop.TIMED_OUT, "
                    "Stop.PAST_DEADLINE or Stop.DRAINING"
                )

    async def finish(self) -> None:
        """Let the handler work to its end."""
        await self._cluster.run_until(lambda: self.finished)

    def _values(self, name: str) -> list[Json]:
        return [report.value for report in self._attempt.reports if report.status_field == name]


P = ParamSpec("P")

StopAt = Callable[[HandlerRun], Stop | None]
"""Looked at after each report: why to stop the handler there, or None."""

_JOB_NAME: Final = "job"


class HandlerCall(Awaitable[HandlerRun]):
    """A run to come: `await` it to its end, or enter it with `async with` to act in mid-run."""

    def __init__(
        self,
        cluster: FakeCluster,
        create: Callable[[FakeCluster], FakeJob],
        *,
        stop_at: StopAt | None,
        raise_errors: bool,
    ) -> None:
        self._cluster = cluster
        self._create = create
        self._stop_at = stop_at
        self._raise_errors = raise_errors
        self._run: HandlerRun | None = None

    def __await__(self) -> Generator[Any, None, HandlerRun]:
        return self._run_to_end().__await__()

    async def __aenter__(self) -> HandlerRun:
        await self._cluster.__aenter__()
        try:
            job = self._create(self._cluster)
            await self._cluster.run_until(lambda: job.phase is Phase.RUNNING)
            self._run = HandlerRun(self._cluster, job)
        except BaseException:
            await self._cluster.__aexit__(None, None, None)
            raise
        return self._run

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._run is not None
        try:
            if error is None:
                await self._run.finish()
        finally:
            await self._cluster.__aexit__(kind, error, trace)
        if self._raise_errors and error is None and self._run.error is not None:
            raise self._run.error

    async def _run_to_end(self) -> HandlerRun:
        async with self as run:
            await self._maybe_stop(run)
        return run

    async def _maybe_stop(self, run: HandlerRun) -> None:
        if (stop_at := self._stop_at) is None:
            return
        await self._cluster.run_until(lambda: run.finished or stop_at(run))
        if not run.finished and (why := stop_at(run)) is not None:
            await run.stop(why)


def run_handler(
    app: WorkerApp,
    type_: str,
    payload: object = None,
    *,
    attempt: int = 1,
    retries: int | None = None,
    last_checkpoint: object = None,
    steps: Mapping[str, object] | None = None,
    signals: Mapping[str, object] | None = None,
    skip_waits: bool = True,
    request: Mapping[str, object] | None = None,
    resources: Mapping[Any, object] | None = None,
    stop_at: StopAt | None = None,
    raise_errors: bool = False,
    draw: float = 0.5,
    patience: float = 5.0,
    max_bytes: int = MAX_STORED_BYTES,
    **options: object,
) -> HandlerCall:
    """Run one attempt of a handler without a cluster, from claim to outcome.

    >>> run = await run_handler(app, "greet", "Ada")                          # doctest: +SKIP
    >>> async with run_handler(app, "import", rows) as run:                   # doctest: +SKIP
    ...     await run.until(lambda: run.checkpoints)
    ...     await run.cancel()

    `attempt` and `last_checkpoint` are as the handler is to see them; the attempts before this one
    have spent a retry each, unless `retries` says otherwise. `steps` are results, by key, of steps
    that the handler does not take again, `signals` the payloads, by name, of signals that have been
    sent. Child jobs run meanwhile, and waiting for them does not end the attempt. Nor does a sleep,
    or a signal that has a `timeout`: that time is skipped, unless `skip_waits=False` has the job
    parked there. A signal that has no `timeout` and was not sent always parks it. `options` are
    fields of the job's spec, as in `FakeCluster.submit`. `stop_at` stops the handler in mid-run;
    `raise_errors` raises what the handler raised. The clock is fake: `asyncio.sleep` in the handler
    takes no time. `draw`, `patience` and `max_bytes` are those of the FakeCluster. Raises
    TestKitError for a type that the app has no handler for, and for an attempt below 1.
    """
    _check_handler_exists(app, type_)
    if attempt < 1:
        raise TestKitError(f"attempt is {attempt}: attempts are counted from 1")
    manifest = build_job_manifest(_JOB_NAME, type_, payload, {"request": request, **options})
    checkpoint = normalize(last_checkpoint, what="last_checkpoint")

    def create(cluster: FakeCluster) -> FakeJob:
        past = _initial_status(cluster, attempt, retries, checkpoint)
        if steps:
            past["steps"] = given_steps(steps, cluster.clock.text)
        job = cluster.create_with_status(manifest, past)
        for name, value in (signals or {}).items():
            send_signal(cluster.simulator, job.record, name, value, "somebody")
        return job

    cluster = FakeCluster(
        app,
        resources=resources,
        types=(type_,),
        draw=draw,
        patience=patience,
        max_bytes=max_bytes,
    )
    cluster.holds_for_children = True  # this is one attempt, and children run in its time
    cluster.skips_waits = skip_waits
    return HandlerCall(cluster, create, stop_at=stop_at, raise_errors=raise_errors)


def _as_sync(call: Callable[P, HandlerCall]) -> Callable[P, HandlerRun]:
    @wraps(call)
    def run(*args: P.args, **kwargs: P.kwargs) -> HandlerRun:
        async def main() -> HandlerRun:
            return await call(*args, **kwargs)

        _check_no_loop()
        return asyncio.run(main())

    return run


def _check_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise TestKitError("an event loop runs already: `await run_handler(...)` instead")


run_handler_sync = _as_sync(run_handler)
"""`run_handler` for tests that are no coroutines: the same arguments, and the run at its end."""


def _initial_status(
    cluster: FakeCluster, attempt: int, retries: int | None, checkpoint: Json
) -> dict[str, Json]:
    """Return the status of a job that is queued for its attempt of this number."""
    past: dict[str, Json] = {
        "attempt": attempt - 1,
        "retries": attempt - 1 if retries is None else retries,
    }
    if checkpoint is not None:
        past["checkpoint"] = checkpoint
    if attempt > 1:
        past["firstStartTime"] = cluster.clock.text
    return past


def _check_handler_exists(app: WorkerApp, type_: str) -> None:
    if type_ not in app.handlers:
        known = ", ".join(sorted(app.handlers)) or "none at all"
        raise TestKitError(f"the app has no handler for {type_!r}; it has {known}")
