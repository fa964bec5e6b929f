"""The database of the import: SQLite, which stands for any that has transactions and upserts."""

import sqlite3
import threading
from collections.abc import Iterable
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Self

from pydantic import BaseModel, Field

SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (number TEXT PRIMARY KEY, day TEXT, product TEXT,
  quantity INTEGER, amount TEXT);
CREATE TABLE IF NOT EXISTS imports (job TEXT PRIMARY KEY, attempt INTEGER NOT NULL);
"""
FENCE = """
INSERT INTO imports (job, attempt) VALUES (?, ?)
ON CONFLICT (job) DO UPDATE SET attempt = excluded.attempt
WHERE imports.attempt <= excluded.attempt
"""
UPSERT = """
INSERT INTO orders (number, day, product, quantity, amount) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (number) DO UPDATE SET day = excluded.day, product = excluded.product,
  quantity = excluded.quantity, amount = excluded.amount
"""
BUSY_SECONDS = 30.0


class Order(BaseModel):
    """One order; what else the file says about it is ignored."""

    number: str = Field(alias="order", min_length=1)
    day: date = Field(alias="date")
    product: str = Field(min_length=1)
    quantity: int = Field(ge=1)
    amount: Decimal = Field(max_digits=12, decimal_places=2)

    def row(self) -> tuple[str, str, str, int, str]:
        """Return what is stored."""
        return (self.number, self.day.isoformat(), self.product, self.quantity, str(self.amount))


class OvertakenError(Exception):
    """A later attempt of the same job writes already: this one has to stop."""


class OrderBook:
    """Orders by their number. Threads may share it: one writes at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open it, and make the tables unless they are there."""
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
        connection.executescript(SCHEMA)
        return cls(connection)

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    def store(self, orders: Iterable[Order], *, job: str, attempt: int) -> None:
        """Store all of the orders or none, in place of those that have their numbers.

        `attempt` fences: raises OvertakenError once a later one of the same job has stored any.
        """
        with self._lock, self._connection as transaction:
            if transaction.execute(FENCE, (job, attempt)).rowcount == 0:
                raise OvertakenError(f"attempt {attempt} of job {job} has been overtaken")
            transaction.executemany(UPSERT, (order.row() for order in orders))

    def count(self) -> int:
        """Return how many orders there are."""
        with self._lock, closing(self._connection.execute("SELECT count(*) FROM orders")) as found:
            return int(found.fetchone()[0])
