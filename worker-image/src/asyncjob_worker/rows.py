"""Reads candidates off the rows of a table: what a worker sees of a job before the claim."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from sys import intern

import orjson

from asyncjob import columns
from asyncjob.json_types import Json, JsonObject, as_object, items, text
from asyncjob.lifecycle.claim import NO_POLICY, Candidate
from asyncjob.lifecycle.policy import PolicyLayer, layer_of

_NOT_A_GATE = ("", "[]")


@dataclass(slots=True)
class RowReader:
    """Knows which cell is which; only the first table of a watch says so."""

    _index: dict[str, int] | None = None

    def read(self, table: JsonObject, resource_version: str) -> Candidate | None:
        """Return the candidate of a one-row table; None for a table without a row."""
        definitions = items(table, "columnDefinitions")
        if definitions:
            names = [text(as_object(item), "name") for item in definitions]
            self._index = {name: position for position, name in enumerate(names)}
        rows = items(table, "rows")
        if not rows:
            return None
        return self._candidate(items(as_object(rows[0]), "cells"), resource_version)

    def _candidate(self, cells: Sequence[Json], resource_version: str) -> Candidate:
        return Candidate(
            name=str(self._cell(cells, columns.NAME)),
            resource_version=resource_version,
            type=intern(str(self._cell(cells, columns.TYPE))),
            priority=_whole(self._cell(cells, columns.PRIORITY)),
            attempt=_whole(self._cell(cells, columns.ATTEMPT)),
            crashes=_whole(self._cell(cells, columns.CRASHES)),
            admitted=self._cell(cells, columns.ADMITTED) is True,
            gated=self._gated(cells),
            policy=self._policy(cells),
        )

    def _gated(self, cells: Sequence[Json]) -> bool:
        wishes = (self._cell(cells, columns.SUSPEND), self._cell(cells, columns.CANCEL))
        return True in wishes or str(self._cell(cells, columns.GATE) or "") not in _NOT_A_GATE

    def _policy(self, cells: Sequence[Json]) -> PolicyLayer:
        timeout = self._cell(cells, columns.TIMEOUT)
        lease = self._cell(cells, columns.LEASE)
        retry = self._cell(cells, columns.RETRY_POLICY)
        if timeout is None and lease is None and not retry:
            return NO_POLICY
        return _layer(_whole_or_none(timeout), _whole_or_none(lease), str(retry or ""))

    def _cell(self, cells: Sequence[Json], name: str) -> Json:
        position = (self._index or {}).get(name, len(cells))
        return cells[position] if position < len(cells) else None


@lru_cache(maxsize=256)
def _layer(timeout: int | None, lease: int | None, retry: str) -> PolicyLayer:
    """Return one object for all jobs that say the same: a backlog is long, and mostly of a kind."""
    source: dict[str, Json] = {"executionTimeoutSeconds": timeout, "leaseDurationSeconds": lease}
    if retry:
        source["retryPolicy"] = as_object(orjson.loads(retry))
    return layer_of(source)


def _whole_or_none(value: Json) -> int | None:
    return value if isinstance(value, int) else None


def _whole(value: Json) -> int:
    return value if isinstance(value, int) else 0
