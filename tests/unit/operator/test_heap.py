"""The heap of deadlines."""

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
