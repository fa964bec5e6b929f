"""The list of cells: each can be named, and the order of a short run follows from its seed."""

from pathlib import Path

import pytest

from asyncjob_chaos.judging.signs import OF_MATRIX
from asyncjob_chaos.matrix import CELLS, FAULTS, named, shuffled

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "chaos.md"


def test_names_are_unique() -> None:
    names = [cell.name for cell in CELLS]
    assert len(names) == len(set(names))


def test_a_cell_is_found_by_its_name_and_a_fault_means_all_its_loads() -> None:
    assert [cell.name for cell in named(["stop-long/plain", "poison"])] == [
        "stop-long/plain",
        "poison/plain",
        "poison/long",
        "poison/waits",
    ]
    with pytest.raises(KeyError):
        named(["stop-long/none"])


def test_the_same_seed_gives_the_same_order_of_all_cells() -> None:
    assert shuffled(1) == shuffled(1)
    assert shuffled(1) != shuffled(2)
    assert {cell.name for cell in shuffled(1)} == {cell.name for cell in CELLS}


def test_every_fault_says_what_it_does_and_what_its_load_is() -> None:
    for fault in FAULTS:
        assert fault.does
        assert fault.loads
    assert OF_MATRIX


def test_the_page_says_of_each_fault_what_it_does_and_what_it_must_show() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for fault in FAULTS:
        assert f"| `{fault.name}` | {fault.does} | {'; '.join(fault.shows)} |" in page


def test_the_page_has_of_each_cell_that_it_holds_and_how_long_it_took_or_why_it_was_not_run() -> (
    None
):
    run = PAGE.read_text(encoding="utf-8").partition("<!-- run -->")[2]
    rows = [line.split("|")[1:-1] for line in run.splitlines() if line.startswith("| `")]
    assert [row[0].strip(" `") for row in rows] == [cell.name for cell in CELLS]
    for row in rows:
        _, _, lost, doubled, broken, _, recovered, _, holds = (text.strip() for text in row)
        if not holds.startswith("not run: "):
            assert (lost, doubled, broken, holds) == ("0", "0", "0", "yes"), row
            assert recovered.endswith(" s"), row
