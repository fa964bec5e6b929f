"""One handler at work: its ends, its stops, and what it must not break."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob.app import Handler, JobContext, WorkerApp
from asyncjob.app.context import Stop
from asyncjob.app.errors import HandlerExitError
from asyncjob_worker.clock import boottime
from asyncjob_worker.execution.attempt import job_info_of
from asyncjob_worker.execution.handler_task import HandlerStopped, HandlerTask
from asyncjob_worker.isolation.executor import HandlerExecutor
from asyncjob_worker.leases.held_job import HeldJob, no_reaction
from support.parts.callbacks import ignore
from support.parts.worker_parts import held

PATIENCE = 30.0


def handler(function: Callable[..., Any]) -> Handler:
    app = WorkerApp()
    app.handler("echo")(function)
    return app.handlers["echo"]


@pytest.fixture
def starts() -> Iterator[HandlerExecutor]:
    starts = HandlerExecutor(2)
    yield starts
    starts.close()


class Run:
    """One execution, to be started and stopped."""

    def __init__(self, starts: HandlerExecutor, of: HeldJob | None = None) -> None:
        self.held = of or held()
        self.context = JobContext(job_info_of(self.held), self.held, remaining=lambda: 1.0)
        self._starts = starts

    async def __call__(
        self, function: Callable[..., Any], *, wait: float = PATIENCE, payload: Any = None
    ) -> object:
        execution = HandlerTask(self.held, self.context, self._starts, on_start=ignore)
        return await execution.run(handler(function), payload, wait)


@pytest.fixture
def run(starts: HandlerExecutor) -> Run:
    return Run(starts)


async def test_an_async_handler_returns_its_result(run: Run) -> None:
    async def work(job: JobContext, payload: int) -> int:
        return payload + job.attempt

    assert await run(work, payload=1) == 2


async def test_a_sync_handler_runs_in_a_thread(run: Run) -> None:
    def work(job: JobContext) -> int:
        return threading.get_ident()

    assert await run(work) != threading.get_ident()


async def test_what_a_handler_raises_comes_out(run: Run) -> None:
    async def work(job: JobContext) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await run(work)


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(7),
        KeyboardInterrupt(),
        StopIteration(),
        asyncio.CancelledError(),
        concurrent.futures.CancelledError(),
    ],
    ids=lambda error: type(error).__module__ + "." + type(error).__name__,
)
async def test_a_sync_handler_cannot_end_the_worker(run: Run, error: BaseException) -> None:
    def work(job: JobContext) -> None:
        raise error

    with pytest.raises(HandlerExitError):
        await run(work)


@pytest.mark.parametrize("error", [SystemExit(7), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_an_async_handler_cannot_end_the_worker(run: Run, error: BaseException) -> None:
    async def work(job: JobContext) -> None:
        raise error

    with pytest.raises(HandlerExitError):
        await run(work)


async def test_the_code_of_sys_exit_is_told(run: Run) -> None:
    async def work(job: JobContext) -> None:
        raise SystemExit(7)

    with pytest.raises(HandlerExitError, match=r"sys\.exit\(7\)"):
        await run(work)


async def test_an_async_handler_that_is_stopped_is_interrupted(run: Run) -> None:
    cleaned = asyncio.Event()

    async def work(job: JobContext) -> None:
        run.held.stop(Stop.CANCELLED)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    with pytest.raises(HandlerStopped) as ended:
        await run(work)
    assert cleaned.is_set()
    assert (ended.value.why, ended.value.future) == (Stop.CANCELLED, None)


async def test_a_sync_handler_that_is_stopped_sees_it(run: Run) -> None:
    started = threading.Event()

    def work(job: JobContext) -> None:
        started.set()
        while not job.cancelled:
            pass

    def stop_it() -> None:
        started.wait(PATIENCE)
        run.held.stop(Stop.DRAINING)

    stopper = threading.Thread(target=stop_it)
    stopper.start()
    with pytest.raises(HandlerStopped) as ended:
        await run(work)
    stopper.join()
    assert ended.value.future is None


async def test_a_handler_that_is_stopped_beforehand_is_never_started(run: Run) -> None:
    started = threading.Event()

    def work(job: JobContext) -> None:
        started.set()

    run.held.stop(Stop.DRAINING)
    with pytest.raises(HandlerStopped):
        await run(work)
    assert not started.is_set()


async def test_the_execution_timeout_stops_an_async_handler(starts: HandlerExecutor) -> None:
    expired = held()
    expired.started_at -= 10_000

    async def work(job: JobContext) -> None:
        await asyncio.Event().wait()

    with pytest.raises(HandlerStopped) as ended:
        await Run(starts, expired)(work)
    assert ended.value.why is Stop.TIMED_OUT


async def test_a_handler_that_ignores_its_stop_is_abandoned_and_still_runs(run: Run) -> None:
    release = threading.Event()

    def work(job: JobContext) -> None:
        run.held.stop(Stop.TIMED_OUT)
        release.wait(PATIENCE)

    with capture_logs() as logs, pytest.raises(HandlerStopped) as ended:
        await run(work, wait=0.0)
    assert ended.value.future is not None
    assert not ended.value.future.done()
    assert "abandoned" in logs[0]["event"]
    release.set()
    await ended.value.future


async def test_an_async_handler_is_at_work_for_as_long_as_its_threads_are(run: Run) -> None:
    release, begun = threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        release.wait(PATIENCE)

    async def in_a_task_of_its_own() -> None:
        await asyncio.to_thread(call)

    async def work(job: JobContext) -> None:
        task = asyncio.create_task(in_a_task_of_its_own())
        await asyncio.to_thread(begun.wait, PATIENCE)
        run.held.stop(Stop.DRAINING)
        await task

    with pytest.raises(HandlerStopped) as ended:
        await run(work, wait=0.05)
    assert ended.value.future is not None
    assert not ended.value.future.done()
    release.set()
    await asyncio.wait({ended.value.future}, timeout=PATIENCE)
    assert ended.value.future.done()


async def test_a_thread_that_ends_within_the_grace_lets_the_handler_end(run: Run) -> None:
    release = threading.Event()

    async def work(job: JobContext) -> None:
        asyncio.get_running_loop().call_later(0.05, release.set)
        run.held.stop(Stop.DRAINING)
        await asyncio.to_thread(release.wait, PATIENCE)

    with pytest.raises(HandlerStopped) as ended:
        await run(work)
    assert ended.value.future is None


async def test_a_handler_that_ends_by_itself_does_not_wait_for_its_threads(run: Run) -> None:
    release = threading.Event()

    async def work(job: JobContext) -> str:
        thread = asyncio.ensure_future(asyncio.to_thread(release.wait, PATIENCE))
        await asyncio.sleep(0.01)
        thread.cancel()
        return "done"

    assert await run(work) == "done"
    release.set()


async def test_a_cancelled_handler_has_the_jobs_own_grace(starts: HandlerExecutor) -> None:
    release = threading.Event()
    impatient = held(spec={"cancelGraceSeconds": 0})

    def work(job: JobContext) -> None:
        impatient.stop(Stop.CANCELLED)
        release.wait(PATIENCE)

    with pytest.raises(HandlerStopped) as ended:
        await Run(starts, impatient)(work, wait=PATIENCE)
    release.set()
    assert ended.value.future is not None
    await ended.value.future


async def test_a_handler_past_the_jobs_deadline_has_the_jobs_own_grace(
    starts: HandlerExecutor,
) -> None:
    release = threading.Event()
    late = held(spec={"cancelGraceSeconds": 0})
    late.deadline_at = boottime() + 0.1

    def work(job: JobContext) -> None:
        release.wait(PATIENCE)

    with pytest.raises(HandlerStopped) as ended:
        await Run(starts, late)(work, wait=PATIENCE)
    release.set()
    assert ended.value.why is Stop.PAST_DEADLINE
    assert ended.value.future is not None
    await ended.value.future


async def test_a_handler_is_not_started_past_the_jobs_deadline(run: Run) -> None:
    run.held.stop(Stop.PAST_DEADLINE)

    async def work(job: JobContext) -> None:
        raise AssertionError

    with pytest.raises(HandlerStopped, match="past its deadline"):
        await run(work)


async def test_a_higher_reason_during_the_wait_counts(run: Run) -> None:
    async def work(job: JobContext) -> None:
        run.held.stop(Stop.DRAINING)
        try:
            await asyncio.Event().wait()
        finally:
            run.held.stop(Stop.CANCELLED)

    with pytest.raises(HandlerStopped) as ended:
        await run(work)
    assert ended.value.why is Stop.CANCELLED


async def test_what_a_handler_returns_or_raises_after_its_stop_does_not_count(run: Run) -> None:
    async def work(job: JobContext) -> str:
        run.held.stop(Stop.DRAINING)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("half done") from None
        return "never"

    with pytest.raises(HandlerStopped):
        await run(work)


async def test_a_stop_after_the_end_reaches_nobody(run: Run) -> None:
    async def work(job: JobContext) -> str:
        return "done"

    assert await run(work) == "done"
    assert run.held._on_stop is no_reaction
    run.held.stop(Stop.FENCED)


async def test_a_worker_that_ends_takes_its_handler_along(run: Run) -> None:
    ended = asyncio.Event()

    async def work(job: JobContext) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    started = asyncio.Event()
    task = asyncio.ensure_future(run(work))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ended.wait()


async def test_a_handler_is_not_started_once_its_lease_may_have_ended(
    starts: HandlerExecutor,
) -> None:
    """The payload took long, and then the event loop stood still."""
    late = held(sent_at=boottime() - 59.5)

    async def work(job: JobContext) -> None:
        raise AssertionError("started")

    with capture_logs() as logs, pytest.raises(HandlerStopped) as stopped:
        await Run(starts, late)(work)
    assert (stopped.value.why, stopped.value.future) == (Stop.FENCED, None)
    assert [entry["event"] for entry in logs] == ["lease lost: no heartbeat was stored in time"]
