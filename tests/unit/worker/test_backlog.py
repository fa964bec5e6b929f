"""Which job a worker takes next."""

import itertools
from collections.abc import Iterable
from typing import Any

from asyncjob.shards import shard_of
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.partitions import PARTITIONS, partition_of
from asyncjob_worker.claiming.selection import JobSelection, Source
from support.parts.worker_parts import candidate

MINE = [0] * PARTITIONS


def backlog(steal_after: float = 1.0, limit: int = 100, limited: Iterable[str] = ()) -> Backlog:
    return Backlog(takeover_delay=steal_after, limit=limit, limited_types=limited)


def names(taken_from: Backlog, now: float, **options: Any) -> list[str]:
    found = []
    while (taken := taken_from.pop(now, **options)) is not None:
        found.append(taken.name)
    return found


def ranks(**rank_of: int) -> list[int]:
    rank_of_partition = [0] * PARTITIONS
    for name, rank in rank_of.items():
        rank_of_partition[partition_of(name)] = rank
    return rank_of_partition


def test_a_higher_priority_comes_first() -> None:
    jobs = backlog()
    for priority in (0, 5, -5):
        jobs.put(candidate(f"p{priority}", priority=priority), 0)
    assert names(jobs, 0) == ["p5", "p0", "p-5"]


def test_jobs_of_one_priority_come_in_order_of_arrival() -> None:
    jobs = backlog()
    for name in "cab":
        jobs.put(candidate(name), 0)
    assert names(jobs, 0) == ["c", "a", "b"]


def chunks(array: str, count: int) -> list[str]:
    return [f"{array}-{number:010x}" for number in range(count)]


def arrays_of(taken: Iterable[str]) -> str:
    return "".join(name.partition("-")[0] for name in taken)


def test_arrays_take_turns_however_many_chunks_each_has_waiting() -> None:
    jobs = backlog(limit=1000, limited=["one/items", "two/items"])
    for name in chunks("a", 100):
        jobs.put(candidate(name, type="one/items"), 0)
    for name in chunks("b", 2):
        jobs.put(candidate(name, type="two/items"), 0)
    for name in chunks("c", 1):
        jobs.put(candidate(name, type="one/items"), 0)
    taken = names(jobs, 0)
    assert arrays_of(taken) == "abcab" + 98 * "a"
    assert [name for name in taken if name.startswith("a")] == chunks("a", 100)


def test_an_array_that_goes_on_with_one_chunk_at_a_time_gets_every_second_claim() -> None:
    jobs = backlog(limited=["one/items"])
    for name in chunks("a", 50):
        jobs.put(candidate(name, type="one/items"), 0)
    taken = []
    for name in chunks("b", 10):
        jobs.put(candidate(name, type="one/items"), 0)
        for _ in range(2):
            one = jobs.pop(0)
            assert one
            taken.append(one.name)
    assert arrays_of(taken) == 10 * "ab"


def test_turns_of_arrays_leave_the_places_of_other_jobs_as_they_are() -> None:
    jobs = backlog(limited=["one/items"])
    for name in ("a-1", "a-2", "single", "b-1", "other"):
        type_ = "one/items" if "-" in name else "plain"
        jobs.put(candidate(name, type=type_), 0)
    assert names(jobs, 0) == ["a-1", "b-1", "single", "a-2", "other"]


def test_arrays_take_turns_among_chunks_that_are_taken_over_from_another_worker() -> None:
    jobs = backlog(steal_after=1.0, limited=["one/items"])
    jobs.reassign([1] * PARTITIONS, 0)
    for name in (*chunks("a", 3), *chunks("b", 1)):
        jobs.put(candidate(name, type="one/items"), 0)
    assert arrays_of(names(jobs, 0.0)) == ""
    assert arrays_of(names(jobs, 1.0)) == "abaa"


def test_names_that_are_gone_are_removed_and_the_others_keep_place_and_turn() -> None:
    jobs = backlog(limit=10_000, limited=["one/items"])
    for round_ in range(30):
        for name in chunks(f"gone{round_}", 100):
            jobs.put(candidate(name, type="one/items"), 0)
            jobs.drop(name)
    assert sum(len(queue.own) for queue in jobs._buckets[0].queues.values()) < 2000
    for name in (*chunks("a", 2), *chunks("b", 1)):
        jobs.put(candidate(name, type="one/items"), 0)
    jobs._compact()
    assert arrays_of(names(jobs, 0)) == "aba"


def test_a_higher_priority_of_an_array_comes_before_turns() -> None:
    jobs = backlog(limited=["one/items"])
    for name in chunks("a", 2):
        jobs.put(candidate(name, type="one/items"), 0)
    for name in chunks("b", 2):
        jobs.put(candidate(name, type="one/items", priority=1), 0)
    assert arrays_of(names(jobs, 0)) == "bbaa"


def test_a_job_of_anothers_partition_waits_for_the_takeover_delay_of_its_rank() -> None:
    jobs = backlog(steal_after=1.0)
    jobs.reassign(ranks(a=2, b=1), 0)
    for name in "abc":
        jobs.put(candidate(name), 0)
    assert names(jobs, 0) == ["c"]
    assert jobs.ready_at() == 1.0
    assert names(jobs, 0.99) == []
    assert names(jobs, 1.0) == ["b"]
    assert names(jobs, 2.0) == ["a"]


def test_a_job_of_another_with_higher_priority_does_not_hold_up_my_own() -> None:
    jobs = backlog()
    jobs.reassign(ranks(a=1), 0)
    jobs.put(candidate("a", priority=9), 0)
    jobs.put(candidate("b"), 0)
    assert names(jobs, 0) == ["b"]
    assert names(jobs, 1) == ["a"]


def test_the_takeover_delay_begins_when_ones_own_share_has_run_out() -> None:
    jobs = backlog(steal_after=1.0)
    jobs.reassign(ranks(a=1), 0)
    for name in "ab":
        jobs.put(candidate(name), 0)
    assert names(jobs, 100) == ["b"]
    assert jobs.ready_at() == 101
    assert names(jobs, 101) == ["a"]


def test_the_takeover_delay_begins_again_with_a_job_lost_to_another() -> None:
    jobs = backlog(steal_after=1.0)
    jobs.reassign(ranks(a=1, b=1), 0)
    for name in "ab":
        jobs.put(candidate(name), 0)
    assert jobs.pop(0) is None
    assert jobs.pop(1) is not None
    jobs.restart_takeover_delay(1.5)
    assert names(jobs, 2.4) == []
    assert len(names(jobs, 2.5)) == 1


PART = JobSelection("default", Source.DEPUTY, frozenset({1}))


def shared_out(*names: str, limited: Iterable[str] = (), type_: str = "echo") -> Backlog:
    """Return a backlog of jobs of others' shards, whose delay of a second begins at 0."""
    jobs = backlog(steal_after=1.0, limited=limited)
    jobs.reassign_sources({Source.DEPUTY: (1,) * PARTITIONS}, 0)
    for name in names:
        jobs.put(candidate(name, type=type_), 0, PART)
    assert jobs.pop(0) is None
    return jobs


def of_shard(shard: int, count: int, array: str = "") -> list[str]:
    """Return names in one shard, in ascending order: those of chunks of an array, or of jobs."""
    made = (f"{array}-{number:010x}" if array else f"j{number}" for number in itertools.count())
    return list(itertools.islice((name for name in made if shard_of(name) == shard), count))


def popped(jobs: Backlog, now: float) -> str | None:
    """Return the name of the job that is popped."""
    found = jobs.pop(now)
    return found.name if found else None


def test_of_an_owner_that_does_not_go_on_the_first_are_taken_over() -> None:
    own = of_shard(1, 3)
    assert names(shared_out(*own), 1.0) == own


def test_of_an_owner_that_goes_on_the_last_are_taken_over() -> None:
    a, b, c, d = of_shard(1, 4)
    jobs = shared_out(a, b, c, d)
    jobs.drop(a)
    assert names(jobs, 1.0) == [d, c]
    assert jobs.ready_at() == 2.0
    assert names(jobs, 1.99) == []
    assert names(jobs, 2.0) == [b]


def test_an_owner_that_has_stopped_is_known_by_the_first_that_stays() -> None:
    a, b, c, d = of_shard(1, 4)
    jobs = shared_out(a, b, c, d)
    jobs.drop(a)
    assert popped(jobs, 1.0) == d
    assert [popped(jobs, 2.0), popped(jobs, 2.0), popped(jobs, 2.0)] == [b, c, None]


def test_one_that_has_come_just_now_is_not_taken_over_as_the_last() -> None:
    a, b, c, new = of_shard(1, 4)
    jobs = shared_out(a, b, c)
    jobs.drop(a)
    jobs.put(candidate(new), 0.5, PART)
    assert names(jobs, 1.0) == [c]
    assert jobs.ready_at() == 1.5
    assert names(jobs, 1.5) == [new]


def test_the_last_of_an_owner_that_goes_on_is_left_to_it_once_it_is_the_only_one() -> None:
    a, b, c = of_shard(1, 3)
    jobs = shared_out(a, b)
    jobs.drop(a)
    assert popped(jobs, 1.0) is None
    assert jobs.ready_at() == 2.0
    jobs.drop(b)
    assert popped(jobs, 9.0) is None
    assert jobs.ready_at() is None
    jobs.put(candidate(c), 10.0, PART)
    assert popped(jobs, 10.0) is None
    assert jobs.ready_at() == 11.0
    assert popped(jobs, 11.0) == c


def test_an_owner_that_goes_on_keeps_nobody_from_the_jobs_of_one_that_does_not() -> None:
    going, standing = of_shard(1, 3), of_shard(2, 2)
    jobs = shared_out(*going, *standing)
    jobs.drop(going[0])
    assert sorted(names(jobs, 1.0)) == sorted([*standing, going[2]])


def test_who_is_not_its_deputy_takes_over_the_first_of_an_owner_in_any_case() -> None:
    jobs = backlog(steal_after=1.0)
    jobs.reassign_sources({Source.FOREIGN: (2,) * PARTITIONS}, 0)
    own = of_shard(1, 4)
    for name in own:
        jobs.put(candidate(name), 0, JobSelection("default", Source.FOREIGN, frozenset({1})))
    assert jobs.pop(0) is None
    jobs.drop(own[0])
    assert names(jobs, 2.0) == own[1:]


def test_of_several_owners_the_jobs_that_have_waited_longest_are_taken_over_first() -> None:
    late, early = of_shard(1, 2), of_shard(2, 2)
    jobs = shared_out(*early)
    for name in late:
        jobs.put(candidate(name), 0.5, PART)
    assert names(jobs, 2.0) == [*early, *late]


def test_where_jobs_are_not_shared_out_by_shard_the_first_is_taken_over_in_any_case() -> None:
    jobs = backlog(steal_after=1.0)
    jobs.reassign([1] * PARTITIONS, 0)
    own = of_shard(1, 4)
    for name in own:
        jobs.put(candidate(name), 0)
    assert jobs.pop(0) is None
    jobs.drop(own[0])
    assert jobs.ready_at() == 1.0
    assert names(jobs, 1.0) == own[1:]


def test_of_chunks_those_are_taken_over_that_would_have_the_last_turns() -> None:
    a, b = of_shard(1, 3, "a"), of_shard(1, 2, "b")
    jobs = shared_out(*a, *b, limited=["x/items"], type_="x/items")
    jobs.drop(a[0])
    assert names(jobs, 1.0) == [a[2], b[1], a[1]]
    assert names(jobs, 2.0) == [b[0]]


def test_a_job_of_another_with_higher_priority_is_taken_over_though_my_own_do_not_run_out() -> None:
    jobs = backlog(steal_after=1.0)
    jobs.reassign(ranks(a=1), 0)
    jobs.put(candidate("a", priority=9), 0)
    for name in "bcd":
        jobs.put(candidate(name), 0)
    taken = [jobs.pop(now) for now in (0.0, 0.5, 1.0)]
    assert [found.name for found in taken if found] == ["b", "c", "a"]


def test_a_newer_version_replaces_the_older_and_keeps_its_place() -> None:
    jobs = backlog()
    jobs.put(candidate("a"), 0)
    jobs.put(candidate("b"), 0)
    jobs.put(candidate("a", resource_version="9"), 0)
    taken = jobs.pop(0)
    assert taken
    assert (taken.name, taken.resource_version) == ("a", "9")
    assert len(jobs) == 1


def test_a_changed_priority_changes_the_place() -> None:
    jobs = backlog()
    jobs.put(candidate("a"), 0)
    jobs.put(candidate("b"), 0)
    jobs.put(candidate("b", priority=1), 0)
    assert names(jobs, 0) == ["b", "a"]


def test_a_dropped_job_is_not_taken() -> None:
    jobs = backlog()
    jobs.put(candidate("a"), 0)
    jobs.drop("a")
    jobs.drop("unknown")
    assert names(jobs, 0) == []


def test_a_job_that_comes_back_after_it_was_dropped_is_taken_once() -> None:
    jobs = backlog()
    jobs.put(candidate("a"), 0)
    jobs.drop("a")
    jobs.put(candidate("a", resource_version="9"), 0)
    assert names(jobs, 0) == ["a"]


def test_beyond_the_limit_jobs_are_left_for_a_later_look() -> None:
    jobs = backlog(limit=2)
    for name in "abc":
        jobs.put(candidate(name), 0)
    assert jobs.overflowed
    jobs.put(candidate("a", resource_version="9"), 0)
    assert names(jobs, 0) == ["a", "b"]
    jobs.clear()
    assert not jobs.overflowed


def test_sharing_out_again_loses_no_job_and_takes_none_twice() -> None:
    jobs = backlog()
    for name in "abcd":
        jobs.put(candidate(name), 0)
    jobs.reassign(ranks(a=1, b=3), 5)
    assert names(jobs, 5) == ["c", "d"]
    jobs.reassign(MINE, 6)
    assert names(jobs, 6) == ["a", "b"]
    assert len(jobs) == 0


def test_a_job_put_back_yields_to_a_newer_version_that_came_meanwhile() -> None:
    jobs = backlog()
    jobs.put(candidate("a"), 0)
    old = jobs.pop(0)
    assert old
    jobs.put(candidate("a", resource_version="9"), 0)
    jobs.put_back(old, 0)
    taken = jobs.pop(0)
    assert taken
    assert taken.resource_version == "9"


def test_a_job_put_back_is_taken_again() -> None:
    jobs = backlog()
    jobs.put(candidate("a"), 0)
    old = jobs.pop(0)
    assert old
    jobs.put_back(old, 0)
    assert names(jobs, 0) == ["a"]


def test_one_that_crashed_before_keeps_its_turn_while_another_such_is_at_work() -> None:
    jobs = backlog()
    jobs.put(candidate("poison", crashes=1), 0)
    jobs.put(candidate("a"), 0)
    assert names(jobs, 0, include_crashed=False) == ["a"]
    jobs.put(candidate("b"), 0)
    assert names(jobs, 0) == ["poison", "b"]


def test_a_deferred_job_is_dropped_shared_out_and_updated_like_any_other() -> None:
    jobs = backlog()
    for name in "abc":
        jobs.put(candidate(name, crashes=1), 0)
    assert names(jobs, 0, include_crashed=False) == []
    jobs.drop("a")
    jobs.put(candidate("b", crashes=1, resource_version="9"), 0)
    jobs.reassign(MINE, 0)
    assert names(jobs, 0, include_crashed=False) == []
    assert names(jobs, 0) == ["b", "c"]


def test_a_job_of_an_excluded_type_keeps_its_turn_and_holds_up_no_other() -> None:
    jobs = backlog(limited={"slow"})
    for name in "ab":
        jobs.put(candidate(name, type="slow"), 0)
    jobs.put(candidate("c"), 0)
    jobs.put(candidate("urgent", type="slow", priority=9), 0)
    assert names(jobs, 0, excluded_types={"slow"}) == ["c"]
    jobs.put(candidate("d"), 0)
    assert names(jobs, 0) == ["urgent", "a", "b", "d"]


def test_limited_and_other_types_of_one_priority_come_in_order_of_arrival() -> None:
    jobs = backlog(limited={"slow", "dear"})
    for name, type_ in (("a", "slow"), ("b", "echo"), ("c", "dear"), ("d", "slow")):
        jobs.put(candidate(name, type=type_), 0)
    assert names(jobs, 0) == ["a", "b", "c", "d"]


def test_others_jobs_of_an_excluded_type_are_nothing_to_wake_up_for() -> None:
    jobs = backlog(steal_after=1.0, limited={"slow"})
    jobs.reassign(ranks(a=1, b=2), 0)
    jobs.put(candidate("a", type="slow"), 0)
    jobs.put(candidate("b"), 0)
    assert names(jobs, 0, excluded_types={"slow"}) == []
    assert jobs.ready_at(excluded_types={"slow"}) == 2.0
    assert jobs.ready_at() == 1.0
    assert names(jobs, 2.0, excluded_types={"slow"}) == ["b"]
    assert jobs.ready_at(excluded_types={"slow"}) is None


def test_a_job_created_again_with_another_type_goes_by_that() -> None:
    jobs = backlog(limited={"slow"})
    jobs.put(candidate("a"), 0)
    jobs.put(candidate("a", type="slow"), 0)
    assert names(jobs, 0, excluded_types={"slow"}) == []
    assert names(jobs, 0) == ["a"]


def test_a_hundred_thousand_jobs_of_an_excluded_type_are_not_looked_at() -> None:
    looks = 0

    class Counted(str):
        __slots__ = ()

        def __hash__(self) -> int:
            nonlocal looks
            looks += 1
            return super().__hash__()

    jobs = backlog(limit=200_000, limited={"slow"})
    for number in range(100_000):
        jobs.put(candidate(Counted(f"s{number}"), type="slow"), 0)
    jobs.put(candidate("next"), 0)
    looks = 0
    assert names(jobs, 0, excluded_types={"slow"}) == ["next"]
    assert looks == 0


def test_with_ageing_who_has_waited_long_enough_comes_before_a_priority() -> None:
    jobs = backlog()
    jobs.set_priority_ageing(10, 0)
    jobs.put(candidate("old"), 0)
    jobs.put(candidate("recent"), 45)
    jobs.put(candidate("urgent", priority=3), 50)
    jobs.put(candidate("later"), 50)
    assert names(jobs, 60) == ["old", "urgent", "recent", "later"]


def test_with_ageing_a_newer_version_and_a_job_put_back_keep_what_they_have_waited() -> None:
    jobs = backlog()
    jobs.set_priority_ageing(10, 0)
    jobs.put(candidate("old"), 0)
    jobs.put(candidate("other", priority=1), 50)
    jobs.put(candidate("old", resource_version="8"), 55)
    taken = jobs.pop(60)
    assert taken
    assert taken.resource_version == "8"
    jobs.put_back(taken, 60)
    assert names(jobs, 60) == ["old", "other"]


def test_ageing_may_be_set_and_taken_back_at_any_time() -> None:
    jobs = backlog()
    jobs.put(candidate("a"), 0)
    jobs.put(candidate("b", priority=1), 0)
    jobs.set_priority_ageing(10, 100)
    jobs.put(candidate("c", priority=5), 130)
    assert names(jobs, 130) == ["c", "b", "a"]
    jobs.put(candidate("d"), 140)
    jobs.put(candidate("e", priority=1), 180)
    jobs.set_priority_ageing(None, 200)
    assert names(jobs, 200) == ["e", "d"]


def test_what_a_job_has_waited_is_forgotten_with_it() -> None:
    jobs = backlog()
    jobs.set_priority_ageing(10, 0)
    for number in range(50):
        jobs.put(candidate(f"j{number}"), 0)
        jobs.drop(f"j{number}")
    assert not jobs._ageing_periods
