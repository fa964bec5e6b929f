"""Steps as a handler takes them, in the test kit: results kept, errors clear, limits held."""

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from asyncjob import Fail, JobContext, StepError, StepRefusedError, WorkerApp
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.step_records import MAX_STEP_BYTES, MAX_STEPS
from asyncjob.testing import FakeCluster, run_handler
from asyncjob.testing.errors import IllegalTransitionError


class Receipt(BaseModel):
    """What a charge gives."""

    number: int
    day: date


CALLS: list[str] = []


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


async def charge(number: int) -> Receipt:
    CALLS.append(f"charge {number}")
    return Receipt(number=number, day=date(2026, 1, 2))


def pack(receipt: Receipt, boxes: int = 1) -> tuple[str, int]:
    CALLS.append(
        f"pack {receipt.number} in {threading.current_thread() is threading.main_thread()}"
    )
    return "packed", boxes


def app_of(handler: Callable[..., Any]) -> WorkerApp:
    app = WorkerApp()
    app.handler("order")(handler)
    return app


async def order(job: JobContext) -> str:
    receipt = await job.step("charge", charge, 7)
    assert isinstance(receipt, Receipt)
    packed = await job.step("pack", pack, receipt)
    assert packed == ("packed", 1)
    return f"{receipt.day} {packed[0]}"


def order_in_sync(job: JobContext) -> str:
    packed = job.step("pack", pack, Receipt(number=1, day=date(2026, 1, 2))).result()
    assert packed == ("packed", 1)
    return packed[0]


async def test_a_step_is_called_once_and_its_result_is_kept_by_its_annotation() -> None:
    run = await run_handler(app_of(order), "order")
    assert run.result == "2026-01-02 packed"
    assert CALLS == ["charge 7", "pack 7 in False"]
    assert run.steps == {"charge": {"number": 7, "day": "2026-01-02"}, "pack": ["packed", 1]}
    record = (run.job.status.steps or {})["charge"]
    assert (record.attempt, record.size_bytes) == (1, len('{"number":7,"day":"2026-01-02"}'))


async def test_a_step_that_is_done_is_not_called_and_its_result_has_its_type() -> None:
    done = {"charge": Receipt(number=9, day=date(2026, 3, 4))}
    run = await run_handler(app_of(order), "order", steps=done, attempt=2)
    assert (run.result, CALLS) == ("2026-03-04 packed", ["pack 9 in False"])
    assert list(run.steps) == ["pack"]


async def test_a_sync_handler_takes_steps_with_result() -> None:
    run = await run_handler(app_of(order_in_sync), "order")
    assert (run.result, CALLS) == ("packed", ["pack 1 in False"])
    assert (
        await run_handler(app_of(order_in_sync), "order", steps={"pack": ["packed", 1]})
    ).steps == {}
    assert len(CALLS) == 1


async def test_a_handler_knows_which_steps_are_done() -> None:
    async def handler(job: JobContext) -> list[str]:
        return sorted(job.steps_done)

    run = await run_handler(app_of(handler), "order", steps={"b": 1, "a": None})
    assert run.result == ["a", "b"]


async def test_lambdas_partials_bound_methods_and_objects_are_steps() -> None:
    class OrderHandlers:
        def close(self) -> int:
            return 1

        async def __call__(self, number: int) -> Receipt:
            return await charge(number)

    def later(number: int) -> Awaitable[Receipt]:
        return charge(number)

    async def handler(job: JobContext) -> None:
        assert await job.step("lambda", lambda: 5) == 5
        assert await job.step("partial", functools.partial(charge, 3)) == await charge(3)
        assert await job.step("object", OrderHandlers(), 4) == await charge(4)
        assert await job.step("bound", OrderHandlers().close) == 1
        assert await job.step("awaitable", later, 5) == await charge(5)
        assert await job.step("nothing", {1: 2}.get, 3) is None

    run = await run_handler(app_of(handler), "order", raise_errors=True)
    assert run.steps["object"] == {"number": 4, "day": "2026-01-02"}
    assert run.steps["nothing"] is None


async def test_steps_taken_at_the_same_time_are_all_kept() -> None:
    async def handler(job: JobContext) -> list[int]:
        steps = [job.step(str(number), abs, number) for number in range(5)]
        return list(await asyncio.gather(*steps))

    run = await run_handler(app_of(handler), "order")
    assert run.result == list(range(5))
    assert sorted(run.steps) == list("01234")


async def test_a_step_that_raises_is_taken_again_with_the_next_attempt() -> None:
    tries: list[int] = []

    def ship() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("busy")
        return "shipped"

    async def handler(job: JobContext) -> str:
        await job.step("charge", charge, 1)
        return await job.step("ship", ship)

    async with FakeCluster(app_of(handler)) as cluster:
        job = await cluster.submit("order")
        await cluster.run_until_idle()
    assert (job.result, job.attempt, CALLS) == ("shipped", 3, ["charge 1"])
    assert (job.status.steps or {})["ship"].attempt == 3


@pytest.mark.parametrize(("retries", "phase"), [(2, Phase.SUCCEEDED), (1, Phase.RETRYING)])
async def test_a_step_is_tried_again_by_itself_after_growing_pauses(
    retries: int, phase: Phase
) -> None:
    times: list[float] = []

    async def handler(job: JobContext) -> str:
        async def ship() -> str:
            times.append(asyncio.get_running_loop().time())
            if len(times) < 3:
                raise ConnectionError("busy")
            return "shipped"

        return await job.step("ship", ship, retries=retries, pause=3.0)

    run = await run_handler(app_of(handler), "order")
    assert run.outcome.phase is phase
    assert [round(one - times[0]) for one in times] == [0, 3, 9][: retries + 1]


async def test_a_sync_handler_tries_a_step_again() -> None:
    tries: list[int] = []

    def ship() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("busy")
        return "shipped"

    def handler(job: JobContext) -> str:
        return job.step("ship", ship, retries=2, pause=0.001).result()

    run = await run_handler(app_of(handler), "order")
    assert (run.result, len(tries)) == ("shipped", 3)


async def test_what_a_step_raises_for_the_job_is_not_tried_again() -> None:
    def ship() -> str:
        CALLS.append("ship")
        raise Fail("sold out")

    async def handler(job: JobContext) -> str:
        return await job.step("ship", ship, retries=5)

    run = await run_handler(app_of(handler), "order")
    assert (run.outcome.reason, CALLS) == (Reason.NOT_RETRYABLE, ["ship"])


@pytest.mark.parametrize(
    ("key", "words"),
    [("charge", "has used this key before"), ("", "1 to 128"), ("k" * 129, "1 to 128")],
)
async def test_a_key_that_cannot_be_is_a_dead_letter_that_says_so(key: str, words: str) -> None:
    async def handler(job: JobContext) -> None:
        await job.step("charge", charge, 1)
        await job.step(key, charge, 2)

    run = await run_handler(app_of(handler), "order")
    assert isinstance(run.error, StepError)
    assert words in str(run.error)
    assert (run.outcome.phase, run.outcome.reason) == (Phase.DEAD_LETTER, Reason.NOT_RETRYABLE)
    assert CALLS == ["charge 1"]


async def test_a_kept_result_that_no_longer_fits_is_a_dead_letter_that_names_the_step() -> None:
    run = await run_handler(app_of(order), "order", steps={"charge": {"number": "seven"}})
    assert run.outcome.phase is Phase.DEAD_LETTER
    assert "step 'charge' does not fit its type: number" in (run.outcome.message or "")
    assert CALLS == []


def parcel() -> int:
    return 7


async def compensates(job: JobContext) -> str:
    try:
        await job.step("parcel", parcel)
    except Exception:  # noqa: BLE001  # as the how-to has it
        await job.step("refund", charge, 1)
    return "done"


async def compensates_whatever(job: JobContext) -> str:
    try:
        await job.step("parcel", parcel)
    except BaseException:  # noqa: BLE001  # what the test is about
        await job.step("refund", charge, 1)
    return "done"


async def goes_on(job: JobContext) -> str:
    with suppress(BaseException):
        await job.step("parcel", parcel)
    return "done"


async def in_a_group(job: JobContext) -> str:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(60))
        group.create_task(compensates(job))
    return "done"


def compensates_sync(job: JobContext) -> str:
    try:
        job.step("parcel", parcel).result()
    except Exception:  # noqa: BLE001  # as the how-to has it
        job.step("refund", charge, 1).result()
    return "done"


@pytest.mark.parametrize(
    "handler", [compensates, compensates_whatever, goes_on, in_a_group, compensates_sync]
)
async def test_a_kept_result_that_does_not_fit_is_compensated_by_nobody(
    handler: Callable[..., Any],
) -> None:
    """It is no failure of the step, whose effect is there: the parcel has been shipped."""
    run = await run_handler(app_of(handler), "order", steps={"parcel": "p7"})
    assert (run.outcome.phase, run.outcome.reason) == (Phase.DEAD_LETTER, Reason.NOT_RETRYABLE)
    assert "step 'parcel' does not fit its type" in (run.outcome.message or "")
    assert run.outcome.error is not None
    assert run.outcome.error.type == "StepError"
    assert CALLS == []
    mended = await run_handler(app_of(handler), "order", steps={"parcel": 7})
    assert mended.result == "done"


async def test_a_job_whose_kept_result_fits_again_goes_on_once_it_is_redriven() -> None:
    releases = ["with text", "with numbers", "mended"]
    release = ""

    def text() -> str:
        CALLS.append("parcel")
        return "p7"

    async def handler(job: JobContext) -> str:
        nonlocal release
        release = releases.pop(0)
        try:
            kept = await job.step("parcel", parcel if release == "with numbers" else text)
        except Exception:
            await job.step("refund", charge, 1)
            raise
        if release == "with text":
            raise ConnectionError("down")
        return str(kept)

    async with FakeCluster(app_of(handler)) as cluster:
        job = await cluster.submit("order")
        await cluster.run_until_idle()
        assert (job.phase, release) == (Phase.DEAD_LETTER, "with numbers")
        await job.redrive()
        await cluster.run_until_idle()
    assert (job.phase, job.result, CALLS) == (Phase.SUCCEEDED, "p7", ["parcel"])


async def test_a_step_that_nobody_takes_is_an_error() -> None:
    async def handler(job: JobContext) -> None:
        job.step("charge", charge, 1)

    run = await run_handler(app_of(handler), "order")
    assert "step 'charge' was not taken" in str(run.error)


async def test_a_step_is_taken_once_however_often_its_call_is_awaited() -> None:
    async def twice(job: JobContext) -> None:
        step = job.step("charge", charge, 1)
        await step
        await step

    def twice_in_sync(job: JobContext) -> None:
        step = job.step("pack", pack, Receipt(number=1, day=date(2026, 1, 2)))
        step.result()
        step.result()

    for handler in (twice, twice_in_sync):
        run = await run_handler(app_of(handler), "order")
        assert isinstance(run.error, StepError)
        assert "was taken before in this attempt" in str(run.error)
    assert CALLS == ["charge 1", "pack 1 in False"]


async def test_a_sync_step_that_would_block_the_loop_and_an_async_one_without_it_are_refused() -> (
    None
):
    async def blocks(job: JobContext) -> None:
        job.step("charge", charge, 1).result()

    def forgets(job: JobContext) -> None:
        job.step("charge", charge, 1).result()

    assert "block the event loop" in str((await run_handler(app_of(blocks), "order")).error)
    assert "calls an async function" in str((await run_handler(app_of(forgets), "order")).error)
    assert CALLS == []


@pytest.mark.parametrize(
    "value", [float("nan"), object(), "x" * MAX_STEP_BYTES], ids=["nan", "object", "large"]
)
async def test_a_result_that_cannot_be_kept_is_refused_and_names_the_step(value: Any) -> None:
    async def handler(job: JobContext) -> None:
        await job.step("read", lambda: value)

    run = await run_handler(app_of(handler), "order")
    assert isinstance(run.error, StepRefusedError)
    assert (run.outcome.phase, run.outcome.reason) == (Phase.DEAD_LETTER, Reason.RESULT_REFUSED)
    assert "step 'read'" in (run.outcome.message or "")


async def test_a_job_keeps_200_steps_and_256_kib_of_their_results() -> None:
    async def many(job: JobContext) -> None:
        for number in range(MAX_STEPS + 1):
            await job.step(str(number), lambda: CALLS.append("called"))

    async def large(job: JobContext) -> None:
        for number in range(5):
            await job.step(str(number), lambda: "x" * (60 * 1024))

    run = await run_handler(app_of(many), "order")
    assert "a job keeps 200 steps" in str(run.error)
    assert len(CALLS) == len(run.steps) == MAX_STEPS
    run = await run_handler(app_of(large), "order")
    assert "262144 of all steps" in str(run.error)
    assert len(run.steps) == 4


async def test_a_handler_that_is_stopped_at_a_step_undoes_nothing() -> None:
    async def handler(job: JobContext) -> None:
        try:
            await job.step("charge", asyncio.sleep, 100)
        except Exception:
            CALLS.append("undone")
            raise

    async with run_handler(app_of(handler), "order") as run:
        await run.until(lambda: True)
        await run.drain()
    assert (run.outcome.reason, CALLS) == (Reason.RELEASED, [])


async def test_a_worker_that_dies_after_a_step_leaves_it_done() -> None:
    async with FakeCluster(app_of(order)) as cluster:
        job = await cluster.submit("order")
        await cluster.run_until(lambda: job.steps)
        await job.crash()
        await cluster.run_until_idle()
    assert (job.result, job.attempt) == ("2026-01-02 packed", 2)
    assert CALLS == ["charge 7", "pack 7 in False"]


async def test_redrive_goes_on_from_the_steps_done_and_rerun_begins_without_them() -> None:
    broken = [True]

    async def handler(job: JobContext) -> None:
        await job.step("charge", charge, 1)
        if broken:
            raise Fail("not now")

    async with FakeCluster(app_of(handler)) as cluster:
        job = await cluster.submit("order")
        await cluster.run_until_idle()
        again = await job.rerun()
        broken.clear()
        await job.redrive()
        await cluster.run_until_idle()
    assert (job.phase, again.phase) == (Phase.SUCCEEDED, Phase.SUCCEEDED)
    assert CALLS == ["charge 1", "charge 1"]
    assert [list(one.steps) for one in (job, again)] == [["charge"], ["charge"]]


async def test_the_fake_cluster_refuses_that_a_step_is_changed() -> None:
    async with FakeCluster(app_of(order)) as cluster:
        job = await cluster.submit("order")
        await cluster.run_until_idle()
        record = job.record
        with pytest.raises(IllegalTransitionError, match="steps are only added"):
            cluster._store.change_status(record, {"steps": {}})
        with pytest.raises(IllegalTransitionError, match="steps are only added"):
            cluster._store.change_status(record, {"steps": {**record.status["steps"], "x": {}}})  # type: ignore[dict-item]
