"""The order in steps: what is done once stays done, and a refund is made once."""

import pytest
from examples.handlers import fulfilment

from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.testing import FakeCluster, run_handler

ORDER = {"number": "7", "total": 5}


async def test_an_order_is_charged_and_shipped() -> None:
    run = await run_handler(fulfilment.app, "order.fulfil", ORDER)
    assert run.result == "parcel-7"
    assert list(run.steps) == ["charge", "ship"]


@pytest.mark.parametrize("done", ["charge", "ship"])
async def test_a_worker_that_dies_after_a_step_does_not_have_it_taken_twice(
    done: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[str] = []
    charge = fulfilment.charge

    async def counted(order: fulfilment.FulfilRequest) -> fulfilment.Receipt:
        charged.append(order.number)
        return await charge(order)

    monkeypatch.setattr(fulfilment, "charge", counted)
    async with FakeCluster(fulfilment.app) as cluster:
        job = await cluster.submit("order.fulfil", ORDER)
        await cluster.run_until(lambda: done in job.steps)
        await job.crash()
        await cluster.run_until_idle()
    assert (job.result, job.attempt, charged) == ("parcel-7", 2, ["7"])


async def test_an_order_that_cannot_be_shipped_is_refunded_once_however_often_it_is_redriven() -> (
    None
):
    async with FakeCluster(fulfilment.app) as cluster:
        job = await cluster.submit("order.fulfil", {**ORDER, "sold_out": True})
        await cluster.run_until_idle()
        assert (job.phase, job.reason) == (Phase.DEAD_LETTER, Reason.NOT_RETRYABLE)
        assert list(job.steps) == ["charge", "refund"]
        await job.redrive()
        await cluster.run_until_idle()
    assert job.phase is Phase.DEAD_LETTER
    assert "is refunded" in (job.message or "")
    assert list(job.steps) == ["charge", "refund"]


@pytest.mark.parametrize("end", ["cancel", "drain", "time_out"])
async def test_nothing_is_refunded_where_the_handler_is_stopped(end: str) -> None:
    async with run_handler(fulfilment.app, "order.fulfil", ORDER) as run:
        await run.until(lambda: run.progress)
        await getattr(run, end)()
    assert list(run.steps) == ["charge"]
