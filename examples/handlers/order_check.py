"""`order.check`: each order is an item of an array, and is checked by itself.

What does not fit `Order` fails without a call of the handler; what is wrong in other ways, here.
`order.check-file` submits such an array for the rows of a file, and waits for it without a slot.
"""

import csv
from decimal import Decimal
from pathlib import Path

from examples.handlers.order_book import Order
from pydantic import BaseModel, ConfigDict

from asyncjob import Fail, ItemContext, JobContext, WorkerApp

app = WorkerApp()

MOST = Decimal(10_000)
"""An order of more is looked at by a person."""


@app.item_handler("order.check", concurrency=16)
async def check(job: ItemContext, order: Order) -> None:
    """Fail what a person has to look at."""
    if order.amount > MOST:
        raise Fail(f"order {order.number} is about {order.amount}: more than {MOST}")
    job.log.info("order is fine", order=order.number)


class CheckRequest(BaseModel):
    """Which file."""

    model_config = ConfigDict(extra="forbid")

    source: Path


class CheckReport(BaseModel):
    """How many orders are fine, and the rows of those to look at, from 0: `17,400-402`."""

    array: str
    fine: int
    to_look_at: str


@app.handler("order.check-file")
async def check_file(job: JobContext, request: CheckRequest) -> CheckReport:
    """Check each row of the file by itself."""
    with request.source.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    array = await job.map("order.check", rows, chunk_size=20)
    view = await array.wait()
    return CheckReport(
        array=view.name, fine=view.items.succeeded, to_look_at=view.items.failed_items
    )
