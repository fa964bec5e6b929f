"""Reads queued jobs from Tables: the printer columns are all that choosing one needs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from sys import intern
from typing import Any, Final

import orjson
import structlog

from asyncjob import columns
from asyncjob.json_types import Json, JsonObject, as_object, child, items, text
from asyncjob.lifecycle.claim import EMPTY_POLICY_LAYER, Candidate
from asyncjob.lifecycle.policy import PolicyLayer, read_policy_layer

log = structlog.get_logger()

_NO_GATE = ("", "[]")

_COLUMNS: Final = (
    columns.NAME,
    columns.TYPE,
    columns.PRIORITY,
    columns.ATTEMPT,
    columns.CRASHES,
    columns.ADMITTED,
    columns.SUSPEND,
    columns.CANCEL,
    columns.GATE,
    columns.TIMEOUT,
    columns.LEASE,
    columns.RETRY_POLICY,
)


CellSelector = Callable[[Sequence[Json]], Sequence[Any]]
"""Returns the cells of `_COLUMNS` from the cells of a row."""


@dataclass(slots=True)
class RowReader:
    """Reads rows by the column definitions, which only the first table of a watch has."""

    _select: CellSelector | None = None

    def read(self, table: JsonObject, resource_version: str) -> Candidate | None:
        """Return the candidate of a one-row table; None for a table without a row.

        A job of a newer API may have values that are not known here. It is left to workers that
        know them: the watch goes on for the others.
        """
        self._read_definitions(table)
        rows = items(table, "rows")
        return self._read_row(as_object(rows[0]), resource_version) if rows else None

    def read_list(self, table: JsonObject) -> Iterator[Candidate | None]:
        """Yield the candidate of each row of a list with metadata; None for one not understood."""
        self._read_definitions(table)
        for row in map(as_object, items(table, "rows")):
            metadata = child(child(row, "object"), "metadata")
            yield self._read_row(row, text(metadata, "resourceVersion"))

    def _read_definitions(self, table: JsonObject) -> None:
        definitions = items(table, "columnDefinitions")
        if definitions:
            self._select = _cell_selector(
                [text(as_object(definition), "name") for definition in definitions]
            )

    def _read_row(self, row: JsonObject, resource_version: str) -> Candidate | None:
        if not self._select:
            return None
        cells = self._select(items(row, "cells"))
        try:
            return _candidate(cells, resource_version)
        except ValueError as error:
            log.warning("a job cannot be read and is passed over", job=cells[0], error=str(error))
            return None


def _cell_selector(names: Sequence[str]) -> CellSelector:
    """Return the selector for rows with these columns; cells that are missing are None.

    Columns may be missing in an older CRD.
    """
    positions, width = {name: position for position, name in enumerate(names)}, len(names)
    select = itemgetter(*(positions.get(name, width) for name in _COLUMNS))
    blanks = (None,) * (width + 1)
    return lambda cells: select((*cells[:width], *blanks))


def _candidate(cells: Sequence[Any], resource_version: str) -> Candidate:
    name, type_, priority, attempt, crashes, admitted, suspend, cancel, gate, *policy = cells
    return Candidate(
        name=str(name),
        resource_version=resource_version,
        # Interned: a long backlog mostly has jobs of a few types.
        type=intern(str(type_)),
        priority=_integer(priority) or 0,
        attempt=_integer(attempt) or 0,
        crashes=_integer(crashes) or 0,
        admitted=admitted is True,
        gated=suspend is True or cancel is True or str(gate or "") not in _NO_GATE,
        policy=_policy(*policy),
    )


def _policy(timeout: Json, lease: Json, retry: Json) -> PolicyLayer:
    if timeout is None and lease is None and not retry:
        return EMPTY_POLICY_LAYER
    return _cached_layer(_integer(timeout), _integer(lease), str(retry or ""))


@lru_cache(maxsize=256)
def _cached_layer(timeout: int | None, lease: int | None, retry: str) -> PolicyLayer:
    """Return the policy of a job's columns; one object for all jobs with the same values."""
    source: dict[str, Json] = {"executionTimeoutSeconds": timeout, "leaseDurationSeconds": lease}
    if retry:
        source["retryPolicy"] = as_object(orjson.loads(retry))
    return read_policy_layer(source)


def _integer(value: Json) -> int | None:
    return value if isinstance(value, int) else None
