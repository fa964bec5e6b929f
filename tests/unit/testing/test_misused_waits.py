"""Waits that would deadlock or be no waits: within a step, forgotten, or left in the background."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from asyncjob.app import JobContext, WorkerApp
from asyncjob.app.errors import SignalTimeout
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.testing import FakeCluster, FakeJob

pytestmark = pytest.mark.filterwarnings("error")

Handle = Callable[[JobContext], Any]


async def ended(handle: Handle) -> FakeJob:
    app = WorkerApp()
    app.handler("job")(handle)

    @app.handler("leaf")
    async def leaf(job: JobContext) -> str:
        await asyncio.sleep(60)
        return "leaf"

    async with FakeCluster(app) as cluster:
        job = await cluster.submit("job")
        await cluster.run_until_idle()
        return job


async def nap(job: JobContext) -> None:
    await job.sleep("nap", hours=1)


async def short_nap(job: JobContext) -> None:
    await job.sleep("nap", seconds=1)


async def ask(job: JobContext) -> Any:
    return await job.signal("go")


async def gather(job: JobContext) -> Any:
    return await job.gather(await job.submit("leaf"))


async def wait_shortly(job: JobContext) -> Any:
    return await (await job.submit("leaf")).wait(timeout=1)


async def in_a_task(job: JobContext) -> None:
    await asyncio.gather(nap(job))


async def in_a_step(job: JobContext) -> None:
    await job.step("inner", nap, job)


@pytest.mark.parametrize("body", [nap, short_nap, ask, gather, wait_shortly, in_a_task, in_a_step])
async def test_a_wait_inside_the_body_of_a_step_is_a_dead_letter_that_says_so(body: Handle) -> None:
    async def handle(job: JobContext) -> None:
        await job.step("all", body, job, retries=3)

    job = await ended(handle)
    assert (job.phase, job.reason, job.status.parks) == (
        Phase.DEAD_LETTER,
        Reason.NOT_RETRYABLE,
        0,
    )
    step = "inner" if body is in_a_step else "all"
    assert f"a wait inside the body of step '{step}'" in (job.message or "")
    assert "take the wait out of the step" in (job.message or "")


@pytest.mark.parametrize(
    "wait",
    [
        lambda job: job.sleep("nap", hours=1).result(),
        lambda job: job.signal("go").result(),
        lambda job: job.submit("leaf").result().wait().result(),
    ],
)
async def test_a_wait_inside_the_body_of_a_step_is_refused_in_threads_too(wait: Handle) -> None:
    def sync(job: JobContext) -> None:
        job.step("all", wait, job).result()

    async def plain_in_a_thread(job: JobContext) -> None:
        await job.step("all", wait, job)

    for handle in (sync, plain_in_a_thread):
        job = await ended(handle)
        assert job.phase is Phase.DEAD_LETTER
        assert "a wait inside the body of step 'all'" in (job.message or "")


async def test_tasks_beside_a_body_may_wait_meanwhile() -> None:
    async def handle(job: JobContext) -> str:
        beside = asyncio.ensure_future(job.sleep("beside", hours=1))
        signal = asyncio.ensure_future(job.signal("go", timeout=timedelta(seconds=5)))
        await job.step("work", asyncio.sleep, 10)
        with pytest.raises(SignalTimeout):
            await signal
        await beside
        return "done"

    job = await ended(handle)
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, "done", 1)


async def test_a_task_that_a_body_leaves_may_wait_once_the_body_is_over() -> None:
    tasks = list[asyncio.Task[None]]()

    async def body(job: JobContext) -> None:
        async def wait_later() -> None:
            await asyncio.sleep(20)
            await job.sleep("later", hours=1)

        await job.submit("leaf")
        tasks.append(asyncio.ensure_future(wait_later()))

    async def handle(job: JobContext) -> str:
        await job.step("begin", body, job)
        if job.steps_done:
            return "done"
        await tasks[0]
        return "not parked"

    job = await ended(handle)
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, "done", 1)


def drop_a_sleep(job: JobContext) -> None:
    job.sleep("cooling-off", hours=1)


def drop_a_signal(job: JobContext) -> None:
    job.signal("approval", bool)


async def drop_a_child(job: JobContext) -> None:
    (await job.submit("leaf", name="one")).wait()


async def drop_a_gather(job: JobContext) -> None:
    job.gather(await job.submit("leaf", name="one"), await job.submit("leaf", name="two"))


DROPS = [
    (drop_a_sleep, "sleep 'cooling-off' was never awaited"),
    (drop_a_signal, "signal 'approval' was never awaited"),
    (drop_a_child, "the wait for child one was never awaited"),
    (drop_a_gather, "the wait for 2 children was never awaited"),
]


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize(("drop", "words"), DROPS)
async def test_a_wait_that_is_never_awaited_ends_the_job_before_its_next_step(
    drop: Handle, words: str, goes_on: bool
) -> None:
    deployed = list[str]()

    async def handle(job: JobContext) -> None:
        if drop in (drop_a_child, drop_a_gather):
            await drop(job)
        else:
            drop(job)
        if goes_on:
            await job.step("deploy", deployed.append, "deployed")

    job = await ended(handle)
    assert (job.phase, job.reason, deployed) == (Phase.DEAD_LETTER, Reason.NOT_RETRYABLE, [])
    assert words in (job.message or "")


ASKED: dict[str, Callable[[JobContext], Any]] = {
    "signal 'approval' is asked whether it is true": lambda job: job.signal("approval", bool),
    "step 'check' is asked whether it is true": lambda job: job.step("check", bool, 1),
}


@pytest.mark.parametrize("words", list(ASKED))
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_what_is_not_awaited_is_neither_true_nor_false(kind: str, words: str) -> None:
    deployed = list[str]()

    def decide(job: JobContext) -> None:
        approved = ASKED[words](job)
        if approved:
            deployed.append("deployed")

    async def handle(job: JobContext) -> None:
        decide(job)

    job = await ended(handle if kind == "async" else decide)
    assert (job.phase, job.reason, deployed) == (Phase.DEAD_LETTER, Reason.NOT_RETRYABLE, [])
    assert words in (job.message or "")


@pytest.mark.parametrize("drop", [drop_a_sleep, drop_a_signal])
async def test_a_wait_that_a_sync_handler_never_takes_ends_its_job(drop: Handle) -> None:
    def handle(job: JobContext) -> None:
        drop(job)
        job.sleep("next", hours=1).result()

    job = await ended(handle)
    assert (job.phase, job.status.parks) == (Phase.DEAD_LETTER, 0)
    assert "was never awaited" in (job.message or "")


async def test_a_wait_that_is_taken_later_or_by_a_task_that_never_began_is_not_forgotten() -> None:
    async def handle(job: JobContext) -> str:
        kept = job.sleep("kept", seconds=30)
        asyncio.ensure_future(job.signal("unbegun")).cancel()
        await asyncio.sleep(0)
        task = asyncio.create_task(job.sleep("task", seconds=10))
        left = asyncio.create_task(job.signal("left"))
        await job.step("between", str, "between")
        await kept
        await task
        left.cancel()
        return "done"

    job = await ended(handle)
    assert (job.phase, job.result) == (Phase.SUCCEEDED, "done")


async def tell_nobody(job: JobContext) -> Any:
    wait = job.signal("answer")
    await job.step("told", fail)
    return await wait


async def fail() -> None:
    raise ValueError("nobody is there")


async def never_begin(job: JobContext) -> None:
    limited = asyncio.create_task(asyncio.wait_for(job.signal("unbegun"), 5))
    limited.cancel()
    await asyncio.wait({limited})


async def ask_one_after_the_other(job: JobContext) -> str:
    calls = [job.signal(who, bool, timeout=timedelta(seconds=1)) for who in ("ada", "bob")]
    for call in calls:
        try:
            await call
        except SignalTimeout:
            return "refused"
    return "granted"


async def test_a_wait_that_is_kept_and_comes_to_nothing_is_no_mistake() -> None:
    async def handle(job: JobContext) -> str:
        await never_begin(job)
        try:
            await tell_nobody(job)
        except ValueError:
            await job.step("undone", str, "undone")
        return await ask_one_after_the_other(job)

    job = await ended(handle)
    assert (job.phase, job.result) == (Phase.SUCCEEDED, "refused")


async def test_a_park_leaves_the_handler_whatever_else_has_gone_wrong() -> None:
    async def handle(job: JobContext) -> str:
        try:
            await job.sleep("nap", hours=1)
        except BaseException:
            job.signal("dropped-as-it-parks")
            await job.step("unlock", str, "unlocked")
            raise
        return "done"

    job = await ended(handle)
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, "done", 1)


async def test_a_wait_in_the_background_that_parks_the_job_says_how_to_wait_instead() -> None:
    async def handle(job: JobContext) -> str:
        day = asyncio.ensure_future(job.sleep("day", hours=24))
        await asyncio.sleep(30)
        day.cancel()
        return "done"

    job = await ended(handle)
    assert job.phase is Phase.DEAD_LETTER
    message = job.message or ""
    assert "the job was to be parked (the job is parked: " not in message
    assert "sleep 'day' is not over" in message
    assert "in a task in the background" in message


async def test_what_is_to_go_on_beside_a_sleep_goes_on_in_a_step() -> None:
    async def handle(job: JobContext) -> str:
        day = asyncio.ensure_future(job.sleep("day", hours=24))
        await job.step("work", asyncio.sleep, 30)
        day.cancel()
        return "done"

    job = await ended(handle)
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, "done", 0)


async def test_more_signals_than_a_park_names_keep_the_slot_as_in_a_worker() -> None:
    async def handle(job: JobContext) -> str:
        waits = [asyncio.ensure_future(job.signal(f"go-{number}", str)) for number in range(21)]
        done, left = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for one in left:
            one.cancel()
        return (await done.pop()) or ""

    app = WorkerApp()
    app.handler("job")(handle)
    async with FakeCluster(app) as cluster:
        job = await cluster.submit("job")
        await cluster.advance(60)
        assert job.phase is Phase.RUNNING
        await job.signal("go-20", "the last")
        await cluster.run_until_idle()
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, "the last", 0)


async def test_a_sleep_beside_more_signals_than_a_park_names_ends_in_its_time() -> None:
    async def handle(job: JobContext) -> str:
        waits = [asyncio.ensure_future(job.signal(f"go-{number}")) for number in range(20)]
        await job.sleep("cap", minutes=30)
        for one in waits:
            one.cancel()
        return "cap"

    job = await ended(handle)
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, "cap", 0)


async def test_a_short_sleep_keeps_the_slot_as_in_a_worker() -> None:
    async def handle(job: JobContext) -> int:
        await job.sleep("short", seconds=2)
        return job.attempt

    job = await ended(handle)
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, 1, 0)
    assert not job.status.waits
    assert job.status.completion_time == "2026-01-01T00:00:02.000Z"
