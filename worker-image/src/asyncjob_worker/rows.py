"""Reads candidates off the rows of a table: what a worker sees of a job before the claim."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from sys import intern
from typing import Any, Final

import orjson

from asyncjob import columns
from asyncjob.json_types import Json, JsonObject, as_object, items, text
from asyncjob.lifecycle.claim import EMPTY_POLICY_LAYER, Candidate
from asyncjob.lifecycle.policy import PolicyLayer, read_policy_layer

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
"""Takes the cells of a row, and returns those of `_COLUMNS`."""


@dataclass(slots=True)
class RowReader:
    """Knows which cell is which; only the first table of a watch says so."""

    _select: CellSelector | None = None

    def read(self, table: JsonObject, resource_version: str) -> Candidate | None:
        """Return the candidate of a one-row table; None for a table without a row."""
        definitions = items(table, "columnDefinitions")
        if definitions:
            self._select = _cell_selector([text(as_object(item), "name") for item in definitions])
        rows = items(table, "rows")
        if not rows or not self._select:
            return None
        return _candidate(self._select(items(as_object(rows[0]), "cells")), resource_version)


def _cell_selector(names: Sequence[str]) -> CellSelector:
    """Return what picks the cells; a column that an older CRD lacks, or a row, is empty."""
    positions, width = {name: position for position, name in enumerate(names)}, len(names)
    pick, blanks = (
        itemgetter(*(positions.get(name, width) for name in _COLUMNS)),
        (None,) * (width + 1),
    )
    return lambda cells: pick((*cells[:width], *blanks))


def _candidate(cells: Sequence[Any], resource_version: str) -> Candidate:
    name, type_, priority, attempt, crashes, admitted, suspend, cancel, gate, *policy = cells
    return Candidate(
        name=str(name),
        resource_version=resource_version,
        # A backlog is long, and mostly of a few types.
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
    """Return one object for all jobs that say the same."""
    source: dict[str, Json] = {"executionTimeoutSeconds": timeout, "leaseDurationSeconds": lease}
    if retry:
        source["retryPolicy"] = as_object(orjson.loads(retry))
    return read_policy_layer(source)


def _integer(value: Json) -> int | None:
    return value if isinstance(value, int) else None
