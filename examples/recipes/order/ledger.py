"""What has been done for each order: SQLite, which stands for the systems that are called.

Each step is done at most once for an order, and undone at most once; an order that is closed takes
no further step. All of that is one transaction each.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

SCHEMA = """
CREATE TABLE IF NOT EXISTS steps (number TEXT, step TEXT, undone INTEGER DEFAULT 0,
  PRIMARY KEY (number, step));
CREATE TABLE IF NOT EXISTS closed (number TEXT PRIMARY KEY);
"""


class OrderClosedError(Exception):
    """The order has been settled: nothing more is done for it."""


class Ledger:
    """The steps of all orders. Threads may share it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open it, and make the tables unless they are there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
        connection.isolation_level = None
        connection.executescript(SCHEMA)
        return cls(connection)

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    def do(self, number: str, step: str) -> None:
        """Do a step, unless it is done; raises OrderClosedError once the order is closed."""
        with self._transaction() as database:
            if database.execute("SELECT 1 FROM closed WHERE number = ?", (number,)).fetchone():
                raise OrderClosedError(f"order {number} is closed")
            database.execute(
                "INSERT OR IGNORE INTO steps (number, step) VALUES (?, ?)", (number, step)
            )

    def shut(self, number: str) -> None:
        """Close the order: from now on steps are only undone."""
        with self._transaction() as database:
            database.execute("INSERT OR IGNORE INTO closed VALUES (?)", (number,))

    def undo(self, number: str, step: str) -> None:
        """Undo a step, unless it is undone."""
        with self._transaction() as database:
            database.execute(
                "UPDATE steps SET undone = undone + 1 WHERE number = ? AND step = ? AND undone = 0",
                (number, step),
            )

    def standing(self, number: str) -> list[str]:
        """Return the steps that are done and not undone, the last one first."""
        with self._transaction() as database:
            rows = database.execute(
                "SELECT step FROM steps WHERE number = ? AND undone = 0 ORDER BY rowid DESC",
                (number,),
            )
            return [str(step) for (step,) in rows]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
