"""Which items of an array ran, which ran again, and what a kill explains of it."""

import pytest

from asyncjob_bench.stats.item_notes import NANOSECONDS, ItemNote
from asyncjob_chaos.judging.item_runs import (
    ItemVerdict,
    WorkerKill,
    busiest_second,
    judge_items,
)

KILLED, OTHER = 7, 8


def notes(pid: int, *items: int, at: float = 0.0, every: float = 0.1) -> list[ItemNote]:
    """Return items that a process began one after another."""
    return [
        ItemNote(pid, item, round((at + number * every) * NANOSECONDS))
        for number, item in enumerate(items)
    ]


def judged(count: int, began: list[ItemNote], *kills: WorkerKill) -> ItemVerdict:
    return judge_items(count, began, began, kills)


def test_an_array_whose_items_ran_once_is_as_it_should_be() -> None:
    verdict = judged(20, [*notes(KILLED, *range(10)), *notes(OTHER, *range(10, 20))])
    assert verdict == ItemVerdict(done=20)


def test_an_item_that_began_and_is_not_done_is_missing() -> None:
    began = notes(OTHER, *range(9))
    verdict = judge_items(9, began, began[:2], ())
    assert verdict.wrong == ["no handler has run items 2, 3, 4, 5, 6 and 2 more to the end"]


def test_an_item_that_the_array_does_not_have_is_told() -> None:
    verdict = judged(3, notes(OTHER, *range(4)))
    assert verdict.wrong == ["there are 3 items, and item 3 ran"]


def test_items_of_a_killed_worker_may_run_again_for_two_seconds() -> None:
    began = [*notes(KILLED, *range(40)), *notes(OTHER, *range(20, 40), at=9.0)]
    verdict = judged(40, began, WorkerKill(KILLED))
    assert (verdict.repeated, verdict.worst, verdict.wrong) == (20, 2.0, [])


def test_more_than_that_is_too_much() -> None:
    began = [*notes(KILLED, *range(40)), *notes(OTHER, *range(19, 40), at=9.0)]
    verdict = judged(40, began, WorkerKill(KILLED))
    assert verdict.wrong == [
        "21 items of process 7 ran again after it was killed, and 20 are explained: 10 in a "
        "second, for 2.0 s"
    ]


def test_seconds_without_an_api_server_explain_more() -> None:
    began = [*notes(KILLED, *range(40)), *notes(OTHER, *range(11, 40), at=9.0)]
    verdict = judged(40, began, WorkerKill(KILLED, unwritten=1.0))
    assert (verdict.repeated, verdict.wrong) == (29, [])
    assert verdict.worst == pytest.approx(1.9)


@pytest.mark.parametrize("kills", [(), (WorkerKill(OTHER),)])
def test_an_item_of_a_worker_that_lives_must_not_run_again(kills: tuple[WorkerKill, ...]) -> None:
    began = [*notes(KILLED, *range(4)), *notes(OTHER, 3, at=9.0)]
    [wrong] = judged(4, began, *kills).wrong
    assert wrong == "item 3 ran again, and nobody killed process 7"


def test_an_item_that_one_process_runs_twice_is_its_own_second_run() -> None:
    [wrong] = judged(3, notes(OTHER, 0, 1, 2, 1)).wrong
    assert wrong == "item 1 ran again, and nobody killed process 8"


def test_a_third_run_takes_the_death_of_the_second_worker() -> None:
    began = [*notes(KILLED, *range(4)), *notes(OTHER, 3, at=9.0), *notes(9, 3, at=12.0)]
    assert judged(4, began, WorkerKill(KILLED), WorkerKill(OTHER)).wrong == []
    [wrong] = judged(4, began, WorkerKill(KILLED)).wrong
    assert wrong == "item 3 ran again, and nobody killed process 8"


def test_the_order_in_which_lines_were_written_does_not_count() -> None:
    began = [*notes(OTHER, 3, at=9.0), *notes(KILLED, *range(4))]
    assert judged(4, began, WorkerKill(KILLED)).wrong == []


def test_the_busiest_second_is_a_second() -> None:
    assert busiest_second([]) == 0
    assert busiest_second(notes(1, *range(30), every=0.1)) == 10
    assert busiest_second([*notes(1, 1, 2, every=2.0), *notes(1, *range(5), at=5, every=0)]) == 5
