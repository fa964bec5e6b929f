"""What a worker reads off the rows of a table."""

from typing import Any

import orjson
import pytest

from asyncjob import columns
from asyncjob.json_types import Json
from asyncjob.lifecycle.policy import Backoff, PolicyLayer
from asyncjob_worker.claiming.job_rows import RowReader

NAMES = [columns.NAME, *(column.name for column in columns.JOB_COLUMNS)]


def table(**cells: Any) -> dict[str, Any]:
    known = {columns.NAME: "j", columns.TYPE: "t", **cells}
    definitions = [{"name": name} for name in NAMES]
    rows = [{"cells": [known.get(name) for name in NAMES]}]
    return {"columnDefinitions": definitions, "rows": rows}


def test_a_row_gives_all_that_choosing_and_claiming_need() -> None:
    row = table(
        **{
            columns.PRIORITY: 7,
            columns.ATTEMPT: 2,
            columns.CRASHES: 1,
            columns.ADMITTED: True,
            columns.TIMEOUT: 30,
            columns.LEASE: 5,
            columns.RETRY_POLICY: '{"maxRetries":1,"backoff":"Fixed"}',
        }
    )
    found = RowReader().read(row, "41")
    assert found
    assert (found.name, found.type, found.resource_version) == ("j", "t", "41")
    assert (found.priority, found.attempt, found.crashes, found.admitted) == (7, 2, 1, True)
    assert found.policy == PolicyLayer(
        max_retries=1,
        backoff=Backoff.FIXED,
        execution_timeout_seconds=30,
        lease_duration_seconds=5,
    )


def test_a_job_that_says_nothing_has_no_policy_and_no_gate() -> None:
    found = RowReader().read(table(), "1")
    assert found
    assert found.policy == PolicyLayer()
    assert not found.gated
    assert not found.admitted


def test_jobs_that_say_the_same_share_what_they_say() -> None:
    said = {columns.TYPE: "send " * 2, columns.TIMEOUT: 30, columns.RETRY_POLICY: '{"jitter":0.5}'}
    tables = [orjson.loads(orjson.dumps(table(**said))) for _ in range(2)]
    one, other = (RowReader().read(found, "1") for found in tables)
    assert one
    assert other
    assert one.policy is other.policy
    assert one.type is other.type
    assert one.policy.jitter == 0.5


@pytest.mark.parametrize(
    ("column", "cell", "gated"),
    [
        (columns.GATE, "2030-01-01T00:00:00Z", True),
        (columns.GATE, '[{"name":"other"}]', True),
        (columns.GATE, "[]", False),
        (columns.GATE, "", False),
        (columns.GATE, None, False),
        (columns.SUSPEND, True, True),
        (columns.SUSPEND, False, False),
        (columns.CANCEL, True, True),
    ],
)
def test_what_holds_a_job_back_is_seen(column: str, cell: Json, gated: bool) -> None:
    found = RowReader().read(table(**{column: cell}), "1")
    assert found
    assert found.gated is gated


def test_only_the_first_table_names_the_columns() -> None:
    reader = RowReader()
    reader.read(table(), "1")
    later = {**table(**{columns.PRIORITY: 3}), "columnDefinitions": None}
    found = reader.read(later, "2")
    assert found
    assert found.priority == 3


def test_a_table_without_rows_is_no_candidate() -> None:
    assert RowReader().read({"rows": []}, "1") is None


def test_columns_that_an_older_crd_lacks_have_their_defaults() -> None:
    older: dict[str, Any] = {
        "columnDefinitions": [{"name": "Name"}, {"name": "Type"}],
        "rows": [{"cells": ["j", "t"]}],
    }
    found = RowReader().read(older, "1")
    assert found
    assert (found.priority, found.crashes, found.gated) == (0, 0, False)


@pytest.mark.parametrize(("cells", "priority"), [(["j", "t"], 0), (["j", "t", 7, 1, 2, 3], 7)])
def test_a_row_may_have_fewer_cells_or_more_than_there_are_columns(
    cells: list[Json], priority: int
) -> None:
    names = ("Name", "Type", columns.PRIORITY)
    table: dict[str, Any] = {
        "columnDefinitions": [{"name": name} for name in names],
        "rows": [{"cells": cells}],
    }
    found = RowReader().read(table, "1")
    assert found
    assert (found.name, found.priority, found.attempt) == ("j", priority, 0)


def test_no_row_is_read_before_the_columns_are_named() -> None:
    assert RowReader().read({"rows": [{"cells": ["j", "t"]}]}, "1") is None


@pytest.mark.parametrize("policy", ['{"backoff":"Linear"}', "no JSON"])
def test_a_job_with_a_policy_of_a_newer_version_is_passed_over(policy: str) -> None:
    reader = RowReader()
    assert reader.read(table(**{columns.RETRY_POLICY: policy}), "1") is None
    assert reader.read(table(), "2")
