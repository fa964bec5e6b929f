"""The judge of the demo's array lets nothing pass that is not as it should be."""

from pathlib import Path
from typing import Any

import pytest

from asyncjob import AsyncArray
from asyncjob_dev.demo.rows import check_rows, is_ended, manifest_for

BROKEN = {"item": 2, "type": "BrokenRecord", "category": "Validation", "message": "2 fields"}
GOOD: dict[str, Any] = {
    "phase": "Succeeded",
    "total": 4,
    "succeeded": 3,
    "failed": 1,
    "failedItems": "2",
    "errors": [BROKEN],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of four rows, one of them over two lines and one broken."""
    file = tmp_path / "rows.csv"
    file.write_text('a,b,c\n1,"two\nlines",3\n1,2,3\n1,2\n4,5,6\n')
    return file


def array(file: Path, **status: Any) -> AsyncArray:
    spec = {"type": "check", "items": {"from": {"uri": f"file://{file}"}}}
    return AsyncArray.model_validate({"spec": spec, "status": status})


def test_all_rows_are_done_but_the_broken_one_which_is_named(file: Path) -> None:
    result = check_rows(array(file, **GOOD))
    assert result.ok, result.problems
    assert result.happened == "Succeeded: 3 of 4 rows done; item 2: 2 fields"


@pytest.mark.parametrize(
    "changed",
    [
        {"phase": "Failed"},
        {"total": 5},
        {"succeeded": 4},
        {"failed": 0},
        {"failedItems": "1"},
        {"errors": []},
        {"errors": [{**BROKEN, "item": 1}]},
        {"open": [{"name": "c", "items": "0", "generation": 1}]},
    ],
)
def test_a_count_an_item_or_an_error_that_is_wrong_is_noticed(
    file: Path, changed: dict[str, Any]
) -> None:
    assert not check_rows(array(file, **{**GOOD, **changed})).ok


def test_an_array_has_ended_once_nothing_more_happens(file: Path) -> None:
    assert is_ended(array(file, phase="Failed"))
    assert not is_ended(array(file, phase="Running"))


def test_the_manifest_names_the_folder_of_the_workers(tmp_path: Path) -> None:
    manifest = tmp_path / "rows.yaml"
    manifest.write_text("uri: file:///project/data/rows.csv")
    assert manifest_for(manifest, Path("/shop")) == "uri: file:///shop/data/rows.csv"
