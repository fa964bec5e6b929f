"""The demo's array: each row of a CSV file is an item, and one of the rows is broken.

The array is checked by reading the file again, in another way. Its manifest has a placeholder for
the folder that the workers run in, because the URI of a file has to be absolute.
"""

import csv
from pathlib import Path
from urllib.parse import urlsplit

from asyncjob import AsyncArray
from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES, ArrayPhase
from asyncjob.names import array_path
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.demo.checks import CheckResult, Scenario, compare

ROWS = Scenario(
    "h",
    "check-rows",
    "an array: each row of a CSV file is checked by itself, and one is broken",
    "Succeeded, with all rows done but the broken one, whose error says what is wrong",
    kind="asyncarray",
)

PLACEHOLDER = "/project/"
"""Stands in the manifest for the folder of the workers."""

READABLE = "examples/data"
"""Folder below it that the workers may read items from."""

ERRORS = '{range .status.errors[*]}item {.item}: {.message}{"\\n"}{end}'
"""As kubectl's jsonpath, what is known of the items that have failed."""


def manifest_for(path: Path, project: Path) -> str:
    """Return the manifest with the folder of the workers in it."""
    return path.read_text(encoding="utf-8").replace(PLACEHOLDER, f"{project}/")


def read_array(plane: ControlPlane) -> AsyncArray:
    """Return the array as the API server has it."""
    return AsyncArray.model_validate(plane.api.get(array_path("default", ROWS.job)))


def is_ended(array: AsyncArray) -> bool:
    """Whether nothing more happens to the array by itself."""
    return array.status.phase in ENDED_ARRAY_PHASES


def check_rows(array: AsyncArray) -> CheckResult:
    """Expect each row to be counted once, and the broken one to be named with what is wrong."""
    source = array.spec.items.from_
    assert source is not None
    rows, broken = _count_rows(Path(urlsplit(source.uri).path))
    status = array.status
    told = {error.item: error.message for error in status.errors or []}
    words = "; ".join(f"item {item}: {message}" for item, message in sorted(told.items()))
    return CheckResult(
        f"{status.phase}: {status.succeeded} of {status.total} rows done; {words or 'no error'}",
        compare(
            phase=(status.phase, ArrayPhase.SUCCEEDED),
            rows=(status.total, rows),
            rows_done=(status.succeeded, rows - len(broken)),
            rows_failed=(status.failed, len(broken)),
            failed_items=(status.failed_items or "", ",".join(map(str, broken))),
            rows_whose_error_is_told=(sorted(told), broken),
            chunks_left=(len(status.open or []), 0),
        ),
    )


def _count_rows(file: Path) -> tuple[int, list[int]]:
    """Return how many rows there are, and the numbers of those that do not fit the header."""
    with file.open(encoding="utf-8", newline="") as source:
        header, *rows = csv.reader(source)
    return len(rows), [at for at, row in enumerate(rows) if len(row) != len(header)]
