"""The import: each order once, whatever dies on the way, and no patience with a bad file."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from examples.handlers.order_book import Order, OrderBook, OvertakenError
from examples.handlers.orders_import import app

from asyncjob.testing import FakeCluster, Phase, Stop, run_handler

TYPE = "orders.import"
HEADER = "order,date,region,product,quantity,unit_price,amount,comment"


def line(number: int, quantity: object = 1) -> str:
    return f'A-{number},2025-01-01,west,"Kettle, 1.7 l",{quantity},9.80,29.40,'


def write(*lines: str, header: str = HEADER) -> dict[str, object]:
    """Write a file, and return the payload that imports it by twos."""
    Path("in.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return {"source": "in.csv", "batch": 2, "max_bad_rows": 1}


def an_order(number: str, quantity: int = 1) -> Order:
    values = {"order": number, "date": "2025-01-01", "product": "Mug", "amount": "1.00"}
    return Order.model_validate({**values, "quantity": quantity})


@pytest.fixture
def database(folder: Path) -> Path:
    return folder / "orders.sqlite"


@pytest.fixture
def book(database: Path) -> Iterator[OrderBook]:
    opened = OrderBook.open(database)
    yield opened
    opened.close()


def quantities(database: Path) -> dict[str, int]:
    connection = sqlite3.connect(database)
    found = dict(connection.execute("SELECT number, quantity FROM orders"))
    connection.close()
    return found


async def test_a_file_is_imported_batch_by_batch(book: OrderBook, database: Path) -> None:
    request = write(*map(line, range(5)))
    run = await run_handler(app, TYPE, request, resources={OrderBook: book}, raise_errors=True)
    assert run.result == {"rows": 5, "imported": 5, "bad": [], "resumed_from": 0}
    assert [value["rows"] for value in run.checkpoints if isinstance(value, dict)] == [2, 4, 5]
    assert run.progress[-1] == (100, "5 orders, 0 bad rows")
    assert quantities(database) == {f"A-{number}": 1 for number in range(5)}


async def test_an_import_goes_on_after_its_checkpoint(book: OrderBook, database: Path) -> None:
    request = write(*map(line, range(5)))
    saved = {"rows": 4, "imported": 3, "bad": [{"line": 3, "problem": "quantity"}]}
    run = await run_handler(
        app, TYPE, request, attempt=2, last_checkpoint=saved, resources={OrderBook: book}
    )
    assert run.result == {**saved, "rows": 5, "imported": 4, "resumed_from": 4}
    assert set(quantities(database)) == {"A-4"}


async def test_a_crash_in_mid_import_neither_loses_nor_doubles_an_order(
    book: OrderBook, database: Path
) -> None:
    request = write(*map(line, range(7)))
    async with FakeCluster(app, resources={OrderBook: book}) as cluster:
        job = await cluster.submit(TYPE, request)
        await cluster.run_until(lambda: job.checkpoint)
        await job.crash()
        await cluster.run_until_idle()
    assert (job.phase, job.attempt, job.status.crashes) == (Phase.SUCCEEDED, 2, 1)
    assert isinstance(job.result, dict)
    assert (job.result["imported"], job.result["resumed_from"]) == (7, 2)
    assert len(quantities(database)) == 7


async def test_bad_rows_are_told_with_their_lines(book: OrderBook, database: Path) -> None:
    request = write(line(0), line(1, "many"), line(2))
    run = await run_handler(app, TYPE, request, resources={OrderBook: book}, raise_errors=True)
    assert isinstance(run.result, dict)
    (bad,) = run.result["bad"]
    assert bad["line"] == 3
    assert "quantity: Input should be a valid integer" in bad["problem"]
    assert set(quantities(database)) == {"A-0", "A-2"}


async def test_too_many_bad_rows_are_a_dead_letter_that_shows_them(book: OrderBook) -> None:
    request = write(line(0), line(1), line(2, 0), "A-3,never,west")
    run = await run_handler(app, TYPE, request, resources={OrderBook: book})
    assert run.outcome.phase is Phase.DEAD_LETTER
    message = str(run.outcome.message)
    assert "more than 1 bad rows: line 4: quantity: " in message
    assert "line 5: " in message
    assert book.count() == 2


@pytest.mark.parametrize(
    ("header", "row", "why"),
    [
        ("order,date,product,quantity", "", "no column amount"),
        ("", "", "no column amount, date, order, product, quantity"),
        (HEADER, '"' + "x" * 200_000 + '"', "field larger than field limit"),
    ],
)
async def test_a_file_that_is_no_table_of_orders_is_not_tried_again(
    book: OrderBook, header: str, row: str, why: str
) -> None:
    run = await run_handler(app, TYPE, write(row, header=header), resources={OrderBook: book})
    assert run.outcome.phase is Phase.DEAD_LETTER
    assert run.outcome.error is not None
    assert run.outcome.error.category == "Validation"
    assert why in str(run.outcome.message)


async def test_a_stopped_import_keeps_what_it_has(book: OrderBook) -> None:
    run = await run_handler(
        app,
        TYPE,
        write(*map(line, range(5))),
        resources={OrderBook: book},
        stop_at=lambda run: Stop.CANCELLED if run.checkpoints else None,
    )
    assert run.outcome.phase is Phase.CANCELLED
    assert book.count() == 2


async def test_the_database_is_opened_where_the_environment_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXAMPLE_DATABASE", "new/orders.sqlite")
    await run_handler(app, TYPE, write(line(0)), raise_errors=True)
    assert quantities(folder / "new" / "orders.sqlite") == {"A-0": 1}


def test_the_newest_file_wins(book: OrderBook, database: Path) -> None:
    book.store([an_order("A-0", 1)], job="one", attempt=3)
    book.store([an_order("A-0", 2)], job="two", attempt=1)
    assert quantities(database) == {"A-0": 2}


def test_an_attempt_that_was_overtaken_writes_nothing(book: OrderBook, database: Path) -> None:
    book.store([an_order("A-0")], job="one", attempt=1)
    book.store([an_order("A-0", 2)], job="one", attempt=2)
    with pytest.raises(OvertakenError, match="attempt 1 of job one"):
        book.store([an_order("A-0", 3), an_order("A-1")], job="one", attempt=1)
    assert quantities(database) == {"A-0": 2}
