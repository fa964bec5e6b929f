"""Which items began again after a kill, and how much work of their worker that was."""

import pytest

from asyncjob_bench.errors import WrongOutcomeError
from asyncjob_bench.stats.item_notes import ItemNote, read_notes, repeated_seconds

SECOND = 1_000_000_000
KILLED = 100 * SECOND
VICTIM, OTHER = 1, 2


def notes(pid: int, items: range, *, first: float, rate: float) -> list[ItemNote]:
    return [
        ItemNote(pid, item, round((first + number / rate) * SECOND))
        for number, item in enumerate(items)
    ]


def test_items_that_begin_again_are_told_in_seconds_of_their_workers_work() -> None:
    before = notes(VICTIM, range(100), first=90.05, rate=10)
    again = notes(OTHER, range(85, 100), first=103, rate=50)
    beside = notes(OTHER, range(500, 600), first=90, rate=10)
    assert repeated_seconds([*before, *beside, *again], VICTIM, KILLED, 2.0) == 1.5


def test_what_another_worker_runs_twice_is_none_of_the_killed_ones() -> None:
    before = notes(VICTIM, range(100), first=90, rate=10)
    twice = notes(OTHER, range(500, 520), first=90, rate=10)
    assert repeated_seconds([*before, *twice, *twice], VICTIM, KILLED, 2.0) == 0


def test_a_worker_that_ran_nothing_lately_tells_nothing() -> None:
    before = notes(VICTIM, range(10), first=10, rate=10)
    with pytest.raises(WrongOutcomeError, match="ran nothing"):
        repeated_seconds(before, VICTIM, KILLED, 2.0)


def test_a_line_that_is_still_being_written_is_no_note() -> None:
    assert read_notes("1 7 30\n1 8 3") == [ItemNote(1, 7, 30)]
    assert read_notes("") == []
