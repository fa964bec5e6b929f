"""Whose turn it is in a queue with limits."""

from asyncjob_operator.core.admission.pending_queue import PendingJob, PendingQueue


def waiting(
    name: str, key: str = "", priority: int = 0, since: float = 0.0, array: str = ""
) -> PendingJob:
    return PendingJob(f"uid-{name}", name, "", key, priority, since, array)


def order(line: PendingQueue, count: int = 100) -> list[str]:
    return [who.name for who in line.pop(count, lambda _: True)]


def line_of(*those: PendingJob, ageing: int | None = None) -> PendingQueue:
    line = PendingQueue(ageing)
    for who in those:
        line.add(who)
    return line


def test_who_came_first_is_first_and_a_higher_priority_before() -> None:
    line = line_of(
        waiting("later", since=2), waiting("urgent", priority=5, since=3), waiting("first", since=1)
    )
    assert order(line) == ["urgent", "first", "later"]
    assert len(line) == 0


def test_keys_take_turns() -> None:
    many = [waiting(f"a{number}", "a", since=number) for number in range(4)]
    line = line_of(*many, waiting("b0", "b", since=50), waiting("b1", "b", since=51))
    assert order(line) == ["a0", "b0", "a1", "b1", "a2", "a3"]


def test_a_key_that_comes_later_has_its_turn_next() -> None:
    line = line_of(*(waiting(f"a{number}", "a", since=number) for number in range(3)))
    assert order(line, count=2) == ["a0", "a1"]
    line.add(waiting("b0", "b", since=60))
    assert order(line) == ["b0", "a2"]


def test_a_key_that_always_has_one_job_more_leaves_others_their_turns() -> None:
    line = line_of(*(waiting(f"a{number}", "a", since=number) for number in range(3)))
    begun = order(line, count=1)
    for number in range(2):
        line.add(waiting(f"b{number}", "b", since=60 + number))
        begun += order(line, count=2 if number else 1)
    assert begun == ["a0", "b0", "a1", "b1"]


def test_arrays_take_turns_with_each_other_and_with_jobs_without_a_key() -> None:
    chunks = [waiting(f"a{number}", since=number, array="a") for number in range(4)]
    line = line_of(*chunks, waiting("b0", since=50, array="b"), waiting("one", since=60))
    assert order(line) == ["a0", "b0", "one", "a1", "a2", "a3"]


def test_an_array_has_no_turn_in_common_with_a_key_of_its_name() -> None:
    line = line_of(
        waiting("a0", since=1, array="a"),
        waiting("a1", since=2, array="a"),
        waiting("k0", "a", since=3),
    )
    assert order(line) == ["a0", "k0", "a1"]


def test_no_limit_of_a_key_holds_back_an_array() -> None:
    line = line_of(waiting("a0", array="a"), waiting("k0", "k"))
    assert [who.name for who in line.pop(9, lambda key: not key)] == ["a0"]


def test_a_priority_outranks_turns() -> None:
    line = line_of(
        waiting("a0", "a", since=1), waiting("a1", "a", 3, since=2), waiting("b0", "b", since=3)
    )
    assert order(line) == ["a1", "b0", "a0"]


def test_with_ageing_who_waits_long_enough_outranks_a_priority() -> None:
    line = line_of(waiting("old", since=0), waiting("urgent", "k", priority=3, since=95), ageing=20)
    assert order(line) == ["old", "urgent"]
    line = line_of(
        waiting("old", since=60), waiting("urgent", "k", priority=3, since=95), ageing=20
    )
    assert order(line) == ["urgent", "old"]


def test_within_a_key_ageing_gives_a_priority_a_head_start_only() -> None:
    line = line_of(waiting("old", since=0), waiting("urgent", priority=3, since=95), ageing=20)
    assert order(line) == ["old", "urgent"]
    line = line_of(waiting("old", since=50), waiting("urgent", priority=3, since=95), ageing=20)
    assert order(line) == ["urgent", "old"]


def test_a_key_at_its_limit_is_passed_over() -> None:
    line = line_of(waiting("a0", "a", since=1), waiting("b0", "b", since=2))
    taken = line.pop(2, lambda key: key != "a")
    assert [who.name for who in taken] == ["b0"]
    assert order(line) == ["a0"]


def test_who_left_the_line_or_changed_in_it_is_taken_as_it_is_now() -> None:
    line = line_of(waiting("a", since=1), waiting("b", since=2), waiting("c", since=3))
    assert line.discard("uid-a")
    assert not line.discard("uid-a")
    assert line.add(waiting("c", priority=1, since=3))
    assert not line.add(waiting("c", priority=1, since=3))
    assert order(line) == ["c", "b"]


def test_a_job_that_gets_another_key_leaves_the_turns_of_its_first() -> None:
    line = line_of(waiting("a", "a", since=1), waiting("b", "b", since=2))
    line.add(waiting("a", "b", since=1))
    assert line.pop(1, lambda key: key == "a") == []
    assert order(line) == ["a", "b"]
    assert len(line) == 0


def test_a_key_without_jobs_keeps_its_last_turn_until_a_thousand_others_have_had_theirs() -> None:
    def second_turn(others: int) -> list[str]:
        line = line_of(waiting("first", "key"))
        order(line)
        for number in range(others):
            line.add(waiting(f"o{number}", f"k{number}"))
            order(line)
        line.add(waiting("again", "key", since=1))
        line.add(waiting("last", f"k{others - 1}", since=0))
        line.add(waiting("new", "new", since=2))
        return order(line)

    assert second_turn(others=999) == ["new", "again", "last"]
    assert second_turn(others=1000) == ["again", "new", "last"]


def test_a_job_rises_by_one_for_each_time_of_ageing_that_it_has_waited() -> None:
    one = waiting("one", priority=3, since=95)
    assert (one.priority_tier(None), one.priority_tier(20)) == (-3, 1)
    later = [waiting("x", since=since).priority_tier(20) for since in (0, 19, 20, 39.9, 40)]
    assert later == [0, 0, 1, 1, 2]
