"""`order.place` takes the steps of an order; `order.settle` comes after it, however it ended.

What is to be undone is not in the handler that failed: that may have been killed. A second job
depends on the first with `outcome: Any`, and reads from the ledger what has been done.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from examples.recipes.order.ledger import Ledger, OrderClosedError
from pydantic import BaseModel, ConfigDict, Field

from asyncjob import Fail, JobContext, WorkerApp

app = WorkerApp()

STEPS = ("reserve", "charge", "ship")


class Order(BaseModel):
    """Which order; `sold_out` makes its last step impossible, `pause` is seconds for each step."""

    model_config = ConfigDict(extra="forbid")

    number: str = Field(min_length=1, max_length=40)
    sold_out: bool = False
    pause: float = Field(default=0.0, ge=0, le=60)


class Settled(BaseModel):
    """How the order ended, and what was undone."""

    shipped: bool
    undone: list[str]


@app.resource
def ledger() -> Iterator[Ledger]:
    """Open it once per worker."""
    opened = Ledger.open(Path(".dev/out/ledger.sqlite"))
    yield opened
    opened.close()


@app.handler("order.place", timeout=600)
async def place(job: JobContext, order: Order, *, ledger: Ledger) -> str:
    """Take the steps in their order; those that are done already change nothing."""
    for number, step in enumerate(STEPS, start=1):
        await asyncio.sleep(order.pause)
        if step == "ship" and order.sold_out:
            raise Fail(f"order {order.number} cannot be shipped: sold out")
        try:
            await asyncio.to_thread(ledger.do, order.number, step)
        except OrderClosedError as error:
            raise Fail(str(error)) from error
        await job.progress(100 * number / len(STEPS), step)
    return f"order {order.number} is on its way"


@app.handler("order.settle", timeout=600)
async def settle(job: JobContext, order: Order, *, ledger: Ledger) -> Settled:
    """Undo what stands of an order that was not shipped, the last step first."""
    await asyncio.to_thread(ledger.shut, order.number)  # a late attempt of `place` does no more
    standing = await asyncio.to_thread(ledger.standing, order.number)
    if "ship" in standing:
        return Settled(shipped=True, undone=[])
    undone: list[str] = list(job.last_checkpoint or [])
    for step in standing:
        await asyncio.sleep(order.pause)
        await asyncio.to_thread(ledger.undo, order.number, step)
        undone.append(step)
        await job.checkpoint(undone)
    return Settled(shipped=False, undone=undone)
