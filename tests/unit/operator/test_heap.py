"""The heap of deadlines."""

import time

from asyncjob_operator.core.heap import TimerHeap


def test_the_most_overdue_come_first_and_leave() -> None:
    heap = TimerHeap()
    for key, at in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("d", 9.0)):
        heap.set(key, at)
    assert heap.pop_due(5, limit=2) == ["a", "b"]
    assert heap.pop_due(5, limit=2) == ["c"]
    assert heap.next_time() == 9


def test_a_new_deadline_replaces_the_old_and_none_removes_it() -> None:
    heap = TimerHeap()
    heap.set("a", 1.0)
    heap.set("a", 5.0)
    heap.set("b", 2.0)
    heap.set("b", None)
    assert heap.next_time() == 5
    assert len(heap) == 1


def test_outdated_entries_do_not_pile_up() -> None:
    heap = TimerHeap()
    for number in range(100_000):
        heap.set("a", 1e6 + number)
    assert len(heap._heap) < 3000
    assert heap.next_time() == 1e6 + 99_999


def test_the_earliest_deadline_is_first_however_often_others_have_changed() -> None:
    heap = TimerHeap()
    for number in reversed(range(20)):
        heap.set(f"{number:02}", float(number))
    for number in range(500):
        heap.set("changing", 1000.0 + number)
        assert heap.next_time() == 0.0
    assert heap.pop_due(100, limit=100) == [f"{number:02}" for number in range(20)]


def test_a_change_among_many_deadlines_takes_no_longer_for_the_others() -> None:
    heap = TimerHeap()
    for number in range(20_000):
        heap.set(f"{number}", float(number))
    began = time.process_time()
    for number in range(2_000):
        heap.set(f"{number}", 1e6 + number)
    assert time.process_time() - began < 1.0


def test_a_deadline_is_due_when_it_has_come_and_known_until_then() -> None:
    heap = TimerHeap()
    heap.set("a", 5.0)
    assert (heap.time_of("a"), heap.time_of("b")) == (5.0, None)
    assert heap.pop_due(4.9, limit=1) == []
    assert heap.pop_due(5.0, limit=1) == ["a"]
    assert heap.time_of("a") is None
