"""Histories of arrays: good ones break nothing, and each rule is broken by a changed one."""

import sys
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from asyncjob.audit.arrays.item_sets import (
    items_between,
    joined,
    number_of,
    read_items,
    shown,
    without,
)
from asyncjob.audit.catalog import AuditRule
from asyncjob.audit.checker import CheckOptions, HistoryChecker, HistoryReport
from asyncjob.names import ARRAYS
from support.objects.array_broken_histories import CASES
from support.objects.array_histories import ArrayBuilder, relist_arrays
from support.objects.histories import HistoryBuilder, Line

Story = Callable[[HistoryBuilder], None]


def verdict(lines: list[Line]) -> HistoryReport:
    return HistoryChecker(CheckOptions()).check(lines)


def a_whole_life(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    array.chunk(0, 4)
    array.chunk(4, 10)
    array.end()
    array.delete()


def an_array_of_a_file(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    entry = {"name": "array-index", "items": "", "generation": 1}
    array.write(phase="Running", total=0, next=0, generation=1, open=[entry])
    history.create("array-index", labels={"asyncjob.dev/array-uid": array.uid}, type="thumb/index")
    history.claim("array-index")
    history.succeed("array-index")
    array.write("open", total=10, index={"records": 10})
    history.delete("array-index")
    array.chunk(0, 10)
    array.end()


def failures_and_a_redrive(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    chunk = array.cut(0, 10)
    array.run(chunk)
    array.fold(chunk, failed="3,7")
    history.delete(chunk)
    array.end("Failed", reason="ItemsFailed")
    array.redrive()
    again = array.cut(3, 4, requeued="7")
    array.run(again)
    array.fold(again)
    history.delete(again)
    last = array.cut(7, 8, requeued="")
    array.run(last)
    array.fold(last)
    array.end()


def a_redrive_that_is_refused(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    chunk = array.cut(0, 10)
    array.run(chunk)
    del array.open[chunk]
    array.write(open=[], failed=10, failedItems="1", failedUnlisted=9)
    array.end("Failed", reason="TooScattered")
    array.ask(redrive=1)
    array.write(redrives=1, reason="RedriveRefused", message="not all are known")


def a_chunk_that_is_halved(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    chunk = array.cut(0, 10)
    array.start(chunk)
    history.claim(chunk)
    history.move(chunk, "DeadLetter", "CrashBudgetExhausted", error={"type": "Crash"})
    array.fold(chunk, done=2, suspects=["2-5", "6-9"])
    history.delete(chunk)
    half = array.cut(2, 6, suspects=["6-9"])
    array.run(half)
    array.fold(half)


def a_chunk_that_a_person_deletes(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    chunk = array.cut(0, 10)
    array.start(chunk)
    history.delete(chunk)
    array.fold(chunk, done=0, requeued="0-9")
    again = array.cut(0, 10, requeued="")
    array.run(again)
    array.fold(again)
    array.end()


def a_cancelled_array_with_a_chunk_created_late(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    chunk = array.cut(0, 10)
    array.ask(cancel=True)
    array.fold(chunk, done=0, requeued="0-9")
    array.end("Cancelled", reason="CancelRequested")
    array.start(chunk)
    history.delete(chunk)


def an_array_whose_watch_is_behind(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history)
    kept = len(history.lines)
    array.create()
    chunk = array.cut(0, 10)
    late = history.lines[kept:]
    del history.lines[kept:]
    array.run(chunk)
    history.lines.extend(late)
    array.fold(chunk)
    history.delete(chunk)
    array.end()


def jobs_whose_watch_is_behind(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    chunk = array.cut(0, 10)
    kept = len(history.lines)
    array.run(chunk)
    late = history.lines[kept:]
    del history.lines[kept:]
    array.fold(chunk)
    array.end()
    history.lines.extend(late)
    history.delete(chunk)


def a_gap_in_which_an_array_ran(history: HistoryBuilder) -> None:
    array, gone = ArrayBuilder(history).create(), ArrayBuilder(history, "gone").create()
    array.chunk(0, 4)
    gone.chunk(0, 4)
    kept = len(history.lines)
    array.chunk(4, 6)
    chunk = array.cut(6, 10)
    array.start(chunk)
    del history.lines[kept:]
    relist_arrays(history, array)
    history.relist()
    history.claim(chunk)
    history.succeed(chunk)
    array.fold(chunk)
    history.delete(chunk)
    array.end()


def a_recording_that_begins_in_the_middle(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    array.chunk(0, 4)
    chunk = array.cut(4, 10)
    array.start(chunk)
    begins = [line for line in history.lines if line["line"] == "start"]
    history.lines[:] = begins
    relist_arrays(history, array)
    history.relist()
    history.claim(chunk)
    history.succeed(chunk)
    array.fold(chunk)
    history.delete(chunk)
    array.end()


def an_array_deleted_while_it_runs(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history, cancelGraceSeconds=60).create()
    chunk = array.cut(0, 10)
    array.start(chunk)
    history.claim(chunk)
    array.delete()
    history.clock += 620
    history.change_spec(chunk, cancel=True)
    history.move(chunk, "Cancelled", "CancelRequested")
    history.delete(chunk)


def more_items_than_there_is_room_for(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history, count=3000, chunkSize=10).create()
    every_other = [str(item) for item in range(0, 2002, 2)]
    first = array.cut(0, 2002)
    array.start(first)
    history.claim(first)
    history.succeed(first)
    kept = ",".join(every_other[:1000])
    array.fold(first, done=1001, failed="2000", requeued=kept)
    history.delete(first)
    second = array.cut(2002, 2003)
    array.run(second)
    more, fails = [*every_other[:999], "2002"], every_other[999]
    array.fold(second, done=0, requeued=",".join(more))
    array.write()
    assert fails == "1998"


def a_job_that_only_bears_the_label(history: HistoryBuilder) -> None:
    array = ArrayBuilder(history).create()
    history.create("odd", labels={"asyncjob.dev/array-uid": array.uid})
    array.chunk(0, 10)
    history.mark("odd", labels={})
    array.end()


STORIES: tuple[Story, ...] = (
    a_whole_life,
    an_array_of_a_file,
    failures_and_a_redrive,
    a_redrive_that_is_refused,
    a_chunk_that_is_halved,
    a_chunk_that_a_person_deletes,
    a_cancelled_array_with_a_chunk_created_late,
    an_array_whose_watch_is_behind,
    jobs_whose_watch_is_behind,
    a_gap_in_which_an_array_ran,
    a_recording_that_begins_in_the_middle,
    an_array_deleted_while_it_runs,
    a_job_that_only_bears_the_label,
)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_no_rule_is_broken_by(story: Story) -> None:
    history = HistoryBuilder()
    story(history)
    report = verdict(history.end())
    assert report.violations == []


@pytest.mark.parametrize(("rule", "story"), CASES, ids=[story.__name__ for _, story in CASES])
def test_a_broken_history_is_found_and_its_rule_named(rule: AuditRule, story: Story) -> None:
    history = HistoryBuilder()
    story(history)
    found = [one for one in verdict(history.end()).violations if one.rule is rule]
    assert found
    assert all(one.message and one.subject.name and one.times for one in found)


def test_arrays_are_counted_and_an_older_recording_is_judged_without_them() -> None:
    history = HistoryBuilder()
    a_whole_life(history)
    a_job_that_only_bears_the_label(history)
    lines = history.end()
    assert verdict(lines).arrays == 2
    older = [line for line in lines if line.get("resource") != ARRAYS]
    report = verdict(older)
    assert (report.arrays, report.violations, report.gaps) == (0, [], [])


def test_chunks_of_arrays_that_were_never_seen_take_no_room() -> None:
    checker = HistoryChecker(CheckOptions())
    history = HistoryBuilder()
    for number in range(50):
        array = ArrayBuilder(history, f"array-{number}")
        array.run(chunk := f"array-{number}-1")
        history.delete(chunk)
    checker.check([line for line in history.end() if line.get("resource") != ARRAYS])
    assert not checker._arrays._arrays


def test_what_is_kept_of_an_array_does_not_grow_with_its_chunks() -> None:
    checker = HistoryChecker(CheckOptions())
    history = HistoryBuilder()
    array = ArrayBuilder(history, count=1000).create()
    for first in range(0, 1000, 2):
        array.chunk(first, first + 2)
    checker.check(history.end())
    [state] = checker._arrays._arrays.values()
    assert (state.reserved, state.former, state.chunks, state.deleted) == ({}, {}, {}, set())
    assert len(state.created) <= 1


def work_for(chunks: int) -> int:
    history = HistoryBuilder()
    array = ArrayBuilder(history, count=chunks).create()
    for first in range(chunks):
        array.chunk(first, first + 1)
    lines = history.end()
    checker, work = HistoryChecker(CheckOptions()), 0

    def count(_frame: object, _event: str, _argument: object) -> Any:
        nonlocal work
        work += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        report = checker.check(lines)
    finally:
        sys.settrace(before)
    assert not report.counts
    return work


def test_work_grows_with_the_chunks_and_no_faster() -> None:
    assert work_for(500) < 10.5 * work_for(50)


@pytest.mark.parametrize(
    ("notation", "expected"),
    [("", ()), ("5", ((5, 5),)), ("7-9,1,2-3", ((1, 3), (7, 9))), ("1-5,3-8", ((1, 8),))],
)
def test_items_are_read_in_any_order(notation: str, expected: object) -> None:
    assert read_items(notation) == expected


@pytest.mark.parametrize("notation", ["a", "1-", "-1", "1,,2", "5-3", "1 2", "²"])
def test_what_is_no_interval_notation_is_refused(notation: str) -> None:
    with pytest.raises(ValueError, match=r"interval notation|ends before"):
        read_items(notation)


def test_sets_of_items_are_those_of_python() -> None:
    chance = Random(1)
    for _ in range(300):
        one = {chance.randrange(30) for _ in range(chance.randrange(20))}
        other = {chance.randrange(30) for _ in range(chance.randrange(20))}
        left, right = as_set(one), as_set(other)
        assert without(left, right) == as_set(one - other)
        assert joined([left, right]) == as_set(one | other)
        assert number_of(left) == len(one)


def as_set(items: set[int]) -> Any:
    return read_items(",".join(map(str, items)))


def test_many_ranges_are_shown_in_part() -> None:
    assert shown(read_items("1,3-4,6,8")) == "1,3-4,6,…"
    assert shown(items_between(0, 3)) == "0-2"
