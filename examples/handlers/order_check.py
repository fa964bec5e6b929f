"""`order.check`: each order is an item of an array, and is checked by itself.

What does not fit `Order` fails without a call of the handler; what is wrong in other ways, here.
"""

from decimal import Decimal

from examples.handlers.order_book import Order

from asyncjob import Fail, ItemContext, WorkerApp

app = WorkerApp()

MOST = Decimal(10_000)
"""An order of more is looked at by a person."""


@app.item_handler("order.check", concurrency=16)
async def check(job: ItemContext, order: Order) -> None:
    """Fail what a person has to look at."""
    if order.amount > MOST:
        raise Fail(f"order {order.number} is about {order.amount}: more than {MOST}")
    job.log.info("order is fine", order=order.number)
