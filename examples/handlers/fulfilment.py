"""`order.fulfil`: an order in steps, none of which is taken twice, and a refund where it fails.

The refund stands in `except Exception`, never in `finally`: a handler is also left where its worker
drains or the job is cancelled, and goes on elsewhere.
"""

import asyncio

from pydantic import BaseModel, ConfigDict, Field

from asyncjob import Fail, JobContext, WorkerApp

app = WorkerApp()


class FulfilRequest(BaseModel):
    """Which order; `sold_out` makes shipping impossible, `pause` is seconds for each step."""

    model_config = ConfigDict(extra="forbid")

    number: str = Field(min_length=1, max_length=40)
    total: int = Field(ge=0)
    sold_out: bool = False
    pause: float = Field(default=0.2, ge=0, le=60)


class Receipt(BaseModel):
    """What the payment service says. The order's number is its key: it charges once for each."""

    payment: str
    total: int


async def charge(order: FulfilRequest) -> Receipt:
    """Charge the card."""
    await asyncio.sleep(order.pause)
    return Receipt(payment=f"pay-{order.number}", total=order.total)


async def refund(receipt: Receipt, pause: float) -> str:
    """Give the money back."""
    await asyncio.sleep(pause)
    return f"refund of {receipt.payment}"


async def ship(order: FulfilRequest) -> str:
    """Hand the order to the carrier."""
    await asyncio.sleep(order.pause)
    if order.sold_out:
        raise LookupError("sold out")
    return f"parcel-{order.number}"


@app.handler("order.fulfil", timeout=600)
async def fulfil(job: JobContext, order: FulfilRequest) -> str:
    """Charge and ship; give the money back if the order cannot be shipped."""
    if "refund" in job.steps_done:
        raise Fail(f"order {order.number} is refunded: rerun the job, it begins without steps")
    receipt = await job.step("charge", charge, order)
    await job.progress(50, "charged")
    try:
        parcel = await job.step("ship", ship, order, retries=2, pause=0.1)
    except Exception as error:
        await job.step("refund", refund, receipt, order.pause)
        raise Fail(f"order {order.number} cannot be shipped: {error}") from error
    await job.progress(100, "shipped")
    return parcel
