"""`orders.import`: a large CSV file into a database, in batches, each followed by a checkpoint.

A batch is one transaction, and its checkpoint comes after it. A worker that dies in between leaves
that batch to be stored once more: orders have a key, so that this changes nothing.
"""

import csv
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from examples.handlers.order_book import Order, OrderBook
from examples.handlers.order_rows import BadRow, open_rows
from pydantic import BaseModel, ConfigDict, Field

from asyncjob import Category, Fail, JobContext, RetryPolicy, WorkerApp

app = WorkerApp()
app.categorize(csv.Error, Category.VALIDATION)

HOPELESS = RetryPolicy(no_retry_on=[Category.VALIDATION])
"""A file that is wrong stays wrong; a database that is away comes back."""


class ImportRequest(BaseModel):
    """Which file, how many rows to a transaction, and how many bad ones to put up with."""

    model_config = ConfigDict(extra="forbid")

    source: Path
    batch: int = Field(default=500, ge=1, le=10_000)
    max_bad_rows: int = Field(default=20, ge=0, le=1000)


class Progress(BaseModel):
    """The checkpoint: rows that are done, how many were orders, and which were not."""

    rows: int = 0
    imported: int = 0
    bad: list[BadRow] = Field(default_factory=list)


class Imported(Progress):
    """The result; `resumed_from` is the row at which this attempt took over."""

    resumed_from: int


@app.resource
def order_book() -> Iterator[OrderBook]:
    """Open the database once for all jobs of the worker."""
    path = Path(os.environ.get("EXAMPLE_DATABASE", ".dev/out/orders.sqlite"))
    path.parent.mkdir(parents=True, exist_ok=True)
    book = OrderBook.open(path)
    yield book
    book.close()


@app.handler("orders.import", timeout=3600, retry=HOPELESS)
def import_orders(job: JobContext, request: ImportRequest, *, orders: OrderBook) -> Imported:
    """Go on after the last checkpoint, batch by batch."""
    done = Progress.model_validate(job.last_checkpoint or {})
    resumed_from = done.rows
    with open_rows(request.source) as rows:
        rest = islice(rows, done.rows, None)
        while (batch := list(islice(rest, request.batch))) and not job.cancelled:
            good = [row for row in batch if isinstance(row, Order)]
            done.bad += [row for row in batch if isinstance(row, BadRow)]
            _check(done, request)
            orders.store(good, job=job.uid, attempt=job.attempt)
            done.rows += len(batch)
            done.imported += len(good)
            job.checkpoint(done)
            job.progress(rows.percent, f"{done.imported} orders, {len(done.bad)} bad rows")
    return Imported(**done.model_dump(), resumed_from=resumed_from)


def _check(done: Progress, request: ImportRequest) -> None:
    if len(done.bad) > request.max_bad_rows:
        shown = "; ".join(f"line {row.line}: {row.problem}" for row in done.bad[:5])
        message = f"{request.source}: more than {request.max_bad_rows} bad rows: {shown}"
        raise Fail(message, category=Category.VALIDATION)
