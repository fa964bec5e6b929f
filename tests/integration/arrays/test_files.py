"""Items in files, on real processes: good ones, and each way in which one may be bad."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from support.driven.arrays import Arrays, all_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture
def folder(arrays: Arrays) -> Path:
    """Start a worker that may read items from a folder of the test's."""
    folder = arrays.ns.folder / "items"
    folder.mkdir()
    arrays.worker("worker-0", "--concurrency=4", f"--payload-prefix=file://{folder}")
    return folder


def create(arrays: Arrays, name: str, file: Path, **spec: Any) -> None:
    arrays.create(name, "rows", 0, **{"items": {"from": {"uri": f"file://{file}"}}, **spec})


def write_lines(file: Path, records: Iterable[Any]) -> None:
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"name": f"row-{number}", "size": number, **more}


def rows_run(arrays: Arrays) -> list[list[str]]:
    """Return number, name and size of each item that has begun, in their order."""
    lines = (arrays.ns.folder / "rows").read_text().splitlines()
    return sorted((line.split(" ") for line in lines), key=lambda one: int(one[0]))


def test_each_line_of_a_file_is_an_item(arrays: Arrays, folder: Path) -> None:
    write_lines(folder / "rows.jsonl", map(row, range(3000)))
    create(arrays, "lines", folder / "rows.jsonl", chunkSize=250, parallelism=4)
    status = arrays.until_phase("lines", "Succeeded")
    assert all_of(status) == (3000, 0, "")
    assert (status["total"], status["index"]["records"]) == (3000, 3000)
    assert len(status["index"]["offsets"]) == 3
    assert rows_run(arrays) == [[f"{one}", f"row-{one}", f"{one}"] for one in range(3000)]
    arrays.until_no_chunks()


def test_each_row_of_a_csv_file_is_an_item_though_it_holds_newlines(
    arrays: Arrays, folder: Path
) -> None:
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "name", "note"])
        writer.writerows([one, f"row-{one}", f"two\nlines, {one}"] for one in range(100))
    create(arrays, "table", folder / "rows.csv", chunkSize=30)
    assert all_of(arrays.until_phase("table", "Succeeded")) == (100, 0, "")
    assert rows_run(arrays) == [[f"{one}", f"row-{one}", f"{one}"] for one in range(100)]


def test_broken_records_and_one_of_ten_megabytes_fail_alone(arrays: Arrays, folder: Path) -> None:
    good = [json.dumps(row(one)) for one in range(10)]
    good[3] = "{broken"
    good[5] = json.dumps({"name": "no size"})
    good[7] = json.dumps({"name": "x" * 10_000_000, "size": 7})
    (folder / "rows.jsonl").write_text("\n".join(good))
    create(arrays, "some", folder / "rows.jsonl", chunkSize=4)
    status = arrays.until_phase("some", "Failed")
    assert all_of(status) == (7, 3, "3,5,7")
    errors = {error["item"]: error["message"] for error in status["errors"]}
    assert "record 3 (at byte" in errors[3]
    assert "size: Field required" in errors[5]
    assert "record 7 (at byte" in errors[7]
    assert "at most 1048576 may be" in errors[7]


def test_records_reach_items_in_a_process_of_their_chunk(arrays: Arrays, folder: Path) -> None:
    write_lines(folder / "rows.jsonl", map(row, range(2500)))
    source = {"from": {"uri": f"file://{folder / 'rows.jsonl'}"}}
    arrays.create("apart", "apart-rows", 0, items=source, chunkSize=500)
    assert all_of(arrays.until_phase("apart", "Succeeded")) == (2500, 0, "")
    rows = sorted((int(line.split()[2]), line.split()[-1]) for line in arrays.ns.trace("row apart"))
    assert rows == [(number, f"row-{number}") for number in range(2500)]


def test_records_that_are_done_are_not_run_and_another_file_is_refused(
    arrays: Arrays, folder: Path
) -> None:
    file = folder / "rows.jsonl"
    write_lines(file, map(row, range(100)))
    create(arrays, "whole", file)
    known = arrays.until_phase("whole", "Succeeded")["index"]["version"]
    (arrays.ns.folder / "rows").unlink()
    source = {"from": {"uri": f"file://{file}", "version": known}, "skip": "0-49,55,98-99"}
    create(arrays, "rest", file, items=source, chunkSize=10)
    assert all_of(arrays.until_phase("rest", "Succeeded")) == (100, 0, "")
    assert [int(one[0]) for one in rows_run(arrays)] == [*range(50, 55), *range(56, 98)]
    (arrays.ns.folder / "rows").unlink()
    write_lines(file, map(row, range(1, 101)))
    create(arrays, "another", file, items=source)
    status = arrays.until_phase("another", "Failed")
    assert (status["reason"], status["succeeded"]) == ("ItemsUnreadable", 0)
    assert f"items.skip is about {known}" in status["message"]
    assert not (arrays.ns.folder / "rows").exists()
    arrays.until_no_chunks()


def test_a_file_without_records_is_done_at_once(arrays: Arrays, folder: Path) -> None:
    (folder / "rows.jsonl").write_text("\n\n")
    create(arrays, "none", folder / "rows.jsonl")
    status = arrays.until_phase("none", "Succeeded")
    assert all_of(status) == (0, 0, "")
    assert status["message"] == "the file of the items has no records"
    arrays.until_no_chunks()


def test_a_missing_file_fails_the_array_in_words_until_it_is_there(
    arrays: Arrays, folder: Path
) -> None:
    create(arrays, "early", folder / "rows.jsonl")
    status = arrays.until_phase("early", "Failed")
    assert (status["reason"], status["total"], status["failed"]) == ("ItemsUnreadable", 0, 0)
    assert "rows.jsonl" in status["message"]
    assert "not found" in status["message"]
    write_lines(folder / "rows.jsonl", map(row, range(5)))
    arrays.ask("early", redrive=1)
    assert all_of(arrays.until_phase("early", "Succeeded")) == (5, 0, "")
    arrays.until_no_chunks()


def test_a_file_that_workers_may_not_read_fails_the_array_in_words(
    arrays: Arrays, folder: Path
) -> None:
    write_lines(folder.parent / "secret.jsonl", map(row, range(5)))
    create(arrays, "curious", folder.parent / "secret.jsonl")
    status = arrays.until_phase("curious", "Failed")
    assert status["reason"] == "ItemsUnreadable"
    assert "is not below what may be read" in status["message"]
    # Nor by a name within the folder that leads out of it.
    (folder / "link.jsonl").symlink_to(folder.parent / "secret.jsonl")
    create(arrays, "sly", folder / "link.jsonl")
    status = arrays.until_phase("sly", "Failed")
    assert "symbolic link" in status["message"]
    assert not (arrays.ns.folder / "rows").exists()


def test_a_file_that_changes_while_it_runs_stops_the_array_in_words(
    arrays: Arrays, folder: Path
) -> None:
    file = folder / "rows.jsonl"
    write_lines(file, (row(one, waits=True) for one in range(200)))
    create(arrays, "moving", file, chunkSize=10, parallelism=2)
    arrays.until_begun("moving")
    write_lines(file, (row(one + 1000) for one in range(300)))
    (arrays.ns.folder / "gate").touch()
    status = arrays.until_phase("moving", "Failed")
    assert status["reason"] == "ItemsUnreadable"
    assert "rows.jsonl has changed" in status["message"]
    assert status["failed"] == 0
    # Those that had been read by then were run, and no others.
    assert 0 < status["succeeded"] <= 20
    assert all(int(size) < 1000 for _, _, size in rows_run(arrays))
    arrays.until_no_chunks()
