"""Histories of arrays: good ones break nothing, and each rule is broken by a changed one."""

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
from support.judging.calls import calls_of
from support.objects.array_histories.broken import CASES
from support.objects.array_histories.builder import ArrayBuilder
from support.objects.array_histories.good import (
    STORIES,
    Story,
    a_job_that_only_bears_the_label,
    a_whole_life,
)
from support.objects.histories import HistoryBuilder, Line


def verdict(lines: list[Line]) -> HistoryReport:
    return HistoryChecker(CheckOptions()).check(lines)


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
    lines, checker = history.end(), HistoryChecker(CheckOptions())
    return calls_of(lambda: checker.check(lines))


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
