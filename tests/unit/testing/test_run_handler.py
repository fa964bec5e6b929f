"""One attempt of one handler: what the kit shows of it, and how it is stopped in mid-run."""

import asyncio
import threading
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from asyncjob import Fail, JobContext, Retry, RetryPolicy, WorkerApp
from asyncjob.testing import (
    FakeCluster,
    HandlerRun,
    Phase,
    Reason,
    Stop,
    StuckError,
    TestKitError,
    run_handler,
    run_handler_sync,
)

app = WorkerApp()


class Letter(BaseModel):
    to: str
    copies: int = 1


@app.handler("send", timeout=60)
async def send(job: JobContext, payload: Letter) -> dict[str, Any]:
    await job.progress(50, "half way")
    await asyncio.sleep(20)
    await job.checkpoint({"sent": payload.copies})
    left = round(job.seconds_left)
    return {"to": payload.to, "left": left, "attempt": job.attempt, "seen": job.last_checkpoint}


@app.handler("rows")
async def rows(job: JobContext, payload: int) -> int:
    for row in range(payload):
        await job.checkpoint(row)
    return payload


@app.handler("rows-sync")
def rows_sync(job: JobContext, payload: int) -> str:
    for row in range(payload):
        job.checkpoint(row)
        if job.cancelled:
            return "noticed"
    return "done"


@app.handler("raises")
async def raises(job: JobContext, payload: str) -> None:
    raise {"retry": Retry("later", after=90), "fail": Fail("never")}.get(payload, OSError(payload))


@app.handler("tidies")
async def tidies(job: JobContext) -> None:
    try:
        await job.progress(1)
        await asyncio.sleep(3600)
    finally:
        await job.checkpoint("tidied")


@app.handler("tells")
async def tells(job: JobContext) -> Any:
    return {"request": dict(job.request), "queue": job.info.queue, "cancelled": job.cancelled}


async def test_a_run_shows_result_progress_checkpoints_and_outcome() -> None:
    run = await run_handler(app, "send", Letter(to="Ada", copies=2))
    assert run.result == {"to": "Ada", "left": 40, "attempt": 1, "seen": None}
    assert run.progress == [(50, "half way")]
    assert run.checkpoints == [{"sent": 2}]
    assert (run.outcome.phase, run.outcome.reason, run.error) == (Phase.SUCCEEDED, None, None)
    assert run.clock.elapsed == 20


async def test_a_later_attempt_sees_its_number_its_checkpoint_and_spent_retries() -> None:
    run = await run_handler(app, "send", {"to": "Ada"}, attempt=3, last_checkpoint=[1])
    assert run.result == {"to": "Ada", "left": 40, "attempt": 3, "seen": [1]}
    failed = await run_handler(app, "raises", "no luck", attempt=4)
    assert failed.outcome.reason is Reason.RETRIES_EXHAUSTED
    assert failed.outcome.message == "failed after 3 of 3 retries: no luck"
    fresh = await run_handler(app, "raises", "no luck", attempt=4, retries=0)
    assert fresh.outcome.message == "retry 1 of 3: no luck"


async def test_the_request_and_options_of_the_spec_reach_the_handler() -> None:
    request = {"headers": {"x-a": ["1"]}}
    run = await run_handler(app, "tells", request=request, queue="mail")
    assert run.result == {"request": request, "queue": "mail", "cancelled": False}


async def test_an_option_that_no_job_has_is_refused_with_those_it_has() -> None:
    with pytest.raises(TypeError, match=r"a job has no colour; it has .*priority"):
        await run_handler(app, "tells", colour="blue")


async def test_a_type_without_handler_is_refused_with_those_there_are() -> None:
    with pytest.raises(TestKitError, match=r"no handler for 'sned'; it has raises, .*send"):
        run_handler(app, "sned")


@pytest.mark.parametrize(
    ("payload", "phase", "reason", "delay"),
    [
        ("retry", Phase.RETRYING, Reason.RETRY_REQUESTED, 90),
        ("fail", Phase.DEAD_LETTER, Reason.NOT_RETRYABLE, None),
        ("other", Phase.RETRYING, Reason.HANDLER_FAILED, 7),
    ],
)
async def test_what_a_handler_raises_is_shown_and_becomes_the_workers_outcome(
    payload: str, phase: Phase, reason: Reason, delay: float | None
) -> None:
    policy = RetryPolicy(initial_delay_seconds=7)
    run = await run_handler(app, "raises", payload, retry=policy)
    assert isinstance(run.error, Retry | Fail | OSError)
    assert (run.outcome.phase, run.outcome.reason, run.outcome.retry_after) == (
        phase,
        reason,
        delay,
    )
    assert run.result is None


async def test_errors_are_raised_if_asked_for() -> None:
    with pytest.raises(OSError, match="boom"):
        await run_handler(app, "raises", "boom", raise_errors=True)
    with pytest.raises(ValidationError):
        await run_handler(app, "send", {"copies": 1}, raise_errors=True)


async def test_a_payload_that_does_not_fit_is_a_dead_letter_and_shows_its_error() -> None:
    run = await run_handler(app, "send", {"copies": "many"})
    assert run.outcome.reason is Reason.INVALID_PAYLOAD
    assert isinstance(run.error, ValidationError)


@pytest.mark.parametrize("type_", ["rows", "rows-sync"])
async def test_a_handler_is_cancelled_exactly_at_a_checkpoint(type_: str) -> None:
    async with run_handler(app, type_, 5) as run:
        await run.until(lambda: run.checkpoints == [0, 1])
        assert not run.finished
        await run.cancel()
    assert run.outcome.reason is Reason.CANCEL_REQUESTED
    assert run.checkpoints == [0, 1]


async def test_cleaning_up_after_a_stop_is_seen() -> None:
    async with run_handler(app, "tidies") as run:
        await run.until(lambda: run.progress)
        await run.drain()
    assert (run.outcome.phase, run.outcome.reason) == (Phase.QUEUED, Reason.RELEASED)
    assert run.checkpoints == ["tidied"]


async def test_a_time_limit_passes_without_anyone_waiting() -> None:
    run = await run_handler(app, "tidies", timeout=30)
    assert run.outcome.reason is Reason.EXECUTION_TIMEOUT
    assert run.clock.elapsed == 30
    async with run_handler(app, "rows", 5) as run:
        await run.until(lambda: run.checkpoints)
        await run.time_out()
    assert run.outcome.reason is Reason.EXECUTION_TIMEOUT
    assert run.clock.elapsed == 1800
    assert run.checkpoints == [0]


def cancelled_at_two(run: HandlerRun) -> Stop | None:
    return Stop.CANCELLED if run.checkpoints == [0, 1, 2] else None


async def test_stop_at_says_where_and_why_to_stop() -> None:
    run = await run_handler(app, "rows", 5, stop_at=cancelled_at_two)
    assert run.outcome.reason is Reason.CANCEL_REQUESTED
    assert run.checkpoints == [0, 1, 2]
    finished = await run_handler(app, "rows", 2, stop_at=cancelled_at_two)
    assert finished.outcome.phase is Phase.SUCCEEDED


async def test_a_condition_that_never_holds_is_said_to_be_so() -> None:
    with pytest.raises(StuckError, match="the handler has ended"):
        async with run_handler(app, "rows", 2) as run:
            await run.until(lambda: run.checkpoints == [9])


async def test_an_outcome_is_asked_for_too_early() -> None:
    async with run_handler(app, "rows", 2) as run:
        with pytest.raises(TestKitError, match="still at work"):
            _ = run.outcome


def test_the_sync_twin_runs_sync_and_async_handlers() -> None:
    assert run_handler_sync(app, "rows", 2).result == 2
    assert run_handler_sync(app, "rows-sync", 2).result == "done"
    run = run_handler_sync(app, "rows-sync", 9, stop_at=cancelled_at_two)
    assert run.outcome.reason is Reason.CANCEL_REQUESTED


def test_a_sync_handler_that_runs_on_after_the_test_holds_up_nobody() -> None:
    local, forever = WorkerApp(), threading.Event()

    @local.handler("never-ends")
    def never_ends(job: JobContext) -> None:
        job.checkpoint(1)
        forever.wait()

    async def main() -> HandlerRun:
        async with run_handler(local, "never-ends", patience=0.01) as run:
            await run.until(lambda: run.checkpoints)
            await run.cancel()
        return run

    assert asyncio.run(main()).outcome.reason is Reason.CANCEL_REQUESTED
    forever.set()


async def test_checkpoints_and_results_beyond_the_limit_are_refused() -> None:
    early = await run_handler(app, "rows", 2, max_bytes=0)
    assert early.outcome.message == "the checkpoint has 1 bytes, the limit is 0"
    late = await run_handler(app, "tells", max_bytes=9)
    assert late.outcome.reason is Reason.RESULT_REFUSED


async def test_jitter_is_decided_by_the_draw() -> None:
    policy = RetryPolicy(initial_delay_seconds=10, jitter=0.5)
    for draw, delay in ((0.0, 5), (0.5, 10), (1.0, 15)):
        run = await run_handler(app, "raises", "again", retry=policy, draw=draw)
        assert run.outcome.retry_after == delay


async def test_a_handler_with_a_process_of_its_own_is_checked_and_runs_here() -> None:
    app = WorkerApp()

    @app.handler("render", isolation="process", memory_mib=64)
    def render(job: JobContext, payload: int) -> int:
        return payload * 2

    assert (await run_handler(app, "render", 21)).result == 42
    refused = await run_handler(app, "render", "x", raise_errors=False)
    assert refused.outcome.reason is Reason.INVALID_PAYLOAD


def test_mistakes_in_using_the_kit_are_told() -> None:
    wrong: Any = "cancel"
    with pytest.raises(TestKitError, match="invalid stop 'cancel': use"):
        run_handler_sync(app, "rows", 1, stop_at=lambda _: wrong)
    with pytest.raises(TestKitError, match="attempt is 0"):
        run_handler_sync(app, "rows", 1, attempt=0)


async def test_the_sync_form_sends_coroutines_to_the_other() -> None:
    with pytest.raises(TestKitError, match="`await run_handler"):
        run_handler_sync(app, "rows", 1)


async def test_a_cluster_that_was_not_entered_says_so() -> None:
    with pytest.raises(TestKitError, match="async with FakeCluster"):
        await FakeCluster(app).submit("rows", 1)
    with pytest.raises(TestKitError, match="async with FakeCluster"):
        await FakeCluster(app).run_until_idle()
