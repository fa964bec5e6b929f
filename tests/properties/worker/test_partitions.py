"""Dealing jobs to workers, whatever their names and number."""

from hypothesis import given
from hypothesis import strategies as st

from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.partitions import PARTITIONS, assign_partitions, partition_of
from support.parts.worker_parts import candidate

WORKERS = st.sets(
    st.text("abcdefghij0123456789-/", min_size=1, max_size=12), min_size=1, max_size=6
)
NAMES = st.lists(st.text("abc123-", min_size=1, max_size=8), unique=True, max_size=30)


@given(WORKERS)
def test_in_each_partition_the_ranks_of_the_workers_are_a_permutation(workers: set[str]) -> None:
    hands = [assign_partitions(worker, workers) for worker in sorted(workers)]
    wanted = list(range(len(workers)))
    assert all(sorted(hand[place] for hand in hands) == wanted for place in range(PARTITIONS))


@given(WORKERS)
def test_each_worker_comes_first_in_about_its_share(workers: set[str]) -> None:
    share = PARTITIONS / len(workers)
    for worker in workers:
        mine = sum(rank == 0 for rank in assign_partitions(worker, workers))
        assert share / 2 < mine < share * 2


@given(WORKERS, st.text("klm", min_size=1))
def test_a_newcomer_takes_only_what_it_comes_first_in(workers: set[str], newcomer: str) -> None:
    theirs = assign_partitions(newcomer, workers)
    for worker in workers:
        before, after = (
            assign_partitions(worker, workers),
            assign_partitions(worker, {*workers, newcomer}),
        )
        lost = {place for place in range(PARTITIONS) if before[place] == 0 != after[place]}
        assert lost <= {place for place in range(PARTITIONS) if theirs[place] == 0}


@given(WORKERS, NAMES)
def test_every_job_is_taken_by_exactly_one_before_anything_is_stolen(
    workers: set[str], names: list[str]
) -> None:
    taken: list[str] = []
    for worker in workers:
        backlog = Backlog(takeover_delay=1.0, limit=1000)
        backlog.reassign(assign_partitions(worker, workers), 0)
        for name in names:
            backlog.put(candidate(name), 0)
        while (found := backlog.pop(0)) is not None:
            taken.append(found.name)
    assert sorted(taken) == sorted(names)


@given(WORKERS, NAMES)
def test_a_worker_left_alone_takes_every_job_in_the_end(
    workers: set[str], names: list[str]
) -> None:
    backlog = Backlog(takeover_delay=1.0, limit=1000)
    backlog.reassign(assign_partitions("me", workers), 0)
    for name in names:
        backlog.put(candidate(name), 0)
    taken = []
    while (found := backlog.pop(0)) is not None:
        taken.append(found.name)
    while (found := backlog.pop(len(workers))) is not None:
        taken.append(found.name)
    assert sorted(taken) == sorted(names)
    assert backlog.ready_at() is None


@given(st.text())
def test_a_partition_exists_for_every_name(name: str) -> None:
    assert 0 <= partition_of(name) < PARTITIONS


def take_step(
    backlog: Backlog, known: set[str], step: tuple[str, str, int, int], now: float
) -> set[str]:
    """Do one step; returns the names that the backlog has to know afterwards."""
    what, name, value, crashes = step
    match what:
        case "put":
            backlog.put(candidate(name, priority=value, crashes=crashes), now)
            return known | {name}
        case "drop":
            backlog.drop(name)
            return known - {name}
        case "deal":
            backlog.reassign([value] * PARTITIONS, now)
        case "lost":
            backlog.restart_takeover_delay(now)
        case _:
            taken = backlog.pop(now, include_crashed=bool(value))
            return known - {taken.name} if taken else known
    return known


@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.just("put"), st.sampled_from("abcd"), st.integers(0, 2), st.integers(0, 1)
            ),
            st.tuples(st.just("drop"), st.sampled_from("abcd"), st.just(0), st.just(0)),
            st.tuples(st.just("take"), st.just(""), st.integers(0, 1), st.just(0)),
            st.tuples(st.just("deal"), st.just(""), st.integers(0, 2), st.just(0)),
            st.tuples(st.just("lost"), st.just(""), st.just(0), st.just(0)),
        ),
        max_size=60,
    )
)
def test_a_backlog_never_loses_a_job_nor_gives_one_twice(
    steps: list[tuple[str, str, int, int]],
) -> None:
    backlog, known, now = Backlog(takeover_delay=1.0, limit=100), set[str](), 0.0
    for step in steps:
        now += 1.0
        known = take_step(backlog, known, step, now)
        assert len(backlog) == len(known)
    rest = []
    for later in (10, 20):
        while (last := backlog.pop(now + later)) is not None:
            rest.append(last.name)
    assert sorted(rest) == sorted(known)
