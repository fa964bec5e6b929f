"""How the shards are assigned among workers of a kind."""

from collections import Counter
from functools import cache

import pytest

from asyncjob.shards import SHARDS
from asyncjob_worker.claiming.partitions import PARTITIONS
from asyncjob_worker.claiming.selection import Source
from asyncjob_worker.claiming.sharding import (
    FOREIGN_RANKS,
    MIN_PEERS,
    NO_SHARD_TURNS,
    WATCHERS_OF_NO_SHARD,
    ShardDeal,
    deal_shards,
)

SIZES = (MIN_PEERS, 10, 63, 64, 80)


def peers(count: int) -> tuple[str, ...]:
    return tuple(f"worker-{number}/{number:x}" for number in range(count))


@cache
def deals(names: tuple[str, ...]) -> list[ShardDeal]:
    found = [deal_shards(name, names) for name in names]
    assert None not in found
    return [deal for deal in found if deal is not None]


def test_few_workers_deal_nothing() -> None:
    names = peers(MIN_PEERS)
    assert deal_shards(names[0], names[:-1]) is None
    assert deal_shards(names[0], names[1:]) is not None, "a worker is one of its peers"


@pytest.mark.parametrize("size", SIZES)
def test_each_shard_has_one_owner_and_another_deputy(size: int) -> None:
    assigned = deals(peers(size))
    for part in ("own", "deputy"):
        counts = Counter(shard for deal in assigned for shard in getattr(deal, part))
        assert counts == dict.fromkeys(range(SHARDS), 1)
    assert not any(deal.own & deal.deputy for deal in assigned)


@pytest.mark.parametrize("size", SIZES)
def test_nobody_has_more_than_a_share(size: int) -> None:
    assigned = deals(peers(size))
    assert max(len(deal.own) for deal in assigned) <= -(-SHARDS // size)
    assert max(len(deal.own | deal.deputy) for deal in assigned) <= -(-2 * SHARDS // size)


@pytest.mark.parametrize("size", SIZES)
def test_who_watches_all_jobs_still_ranks_them_as_the_watches_of_shards_do(size: int) -> None:
    for deal in deals(peers(size)):
        ranks = dict(enumerate(deal.ranks_by_shard))
        assert {shard for shard, rank in ranks.items() if rank == 0} == deal.own
        assert {shard for shard, rank in ranks.items() if rank == 1} == deal.deputy
        assert set(ranks.values()) <= {0, 1, *FOREIGN_RANKS}


def test_with_a_worker_for_each_shard_each_has_one_and_is_deputy_of_one() -> None:
    assert {(len(deal.own), len(deal.deputy)) for deal in deals(peers(SHARDS))} == {(1, 1)}


def test_most_shards_stay_where_they_are_when_a_worker_goes() -> None:
    names = peers(10)
    before, after = deals(names)[1:], deals(names[1:])
    kept = sum(len(old.own & new.own) for old, new in zip(before, after, strict=True))
    assert kept >= SHARDS // 2


@pytest.mark.parametrize("size", SIZES)
def test_a_few_watch_the_jobs_without_a_shard_and_rank_among_themselves(size: int) -> None:
    watching = [deal for deal in deals(peers(size)) if deal.watches_no_shard]
    assert len(watching) == WATCHERS_OF_NO_SHARD
    for partition in range(0, PARTITIONS, 64):
        ranks = sorted(deal.ranks[Source.NO_SHARD][partition] for deal in watching)
        assert ranks == [0, 1, 2]


def test_an_owner_comes_first_then_its_deputy_then_who_looks() -> None:
    [deal, *_] = deals(peers(64))
    assert set(deal.ranks[Source.OWN]) == {0}
    assert set(deal.ranks[Source.DEPUTY]) == {1}
    assert set(deal.ranks[Source.FOREIGN]) == set(FOREIGN_RANKS)
    assert set(deal.ranks[Source.PRIORITY]) == set(range(64))


@pytest.mark.parametrize("size", [MIN_PEERS, 10, 64])
def test_in_a_few_turns_all_have_looked_at_all_that_others_watch(size: int) -> None:
    assigned = deals(peers(size))
    for turn in (0, 1_800_000_000):
        turns = range(turn, turn + 6)
        looks = [deal.foreign_shards(one) for deal in assigned for one in turns]
        assert set().union(*(shards for shards in looks if shards)) == set(range(SHARDS))
        assert frozenset() in looks
    assert not any(
        (deal.foreign_shards(turn) or frozenset()) & (deal.own | deal.deputy)
        for deal in assigned
        for turn in range(SHARDS)
    )


@pytest.mark.parametrize("count", range(MIN_PEERS, 131))
def test_in_time_each_worker_looks_at_every_shard(count: int) -> None:
    """The last of five idle workers may be the only one that is not full."""
    begin = 1_800_000_000
    for place in range(NO_SHARD_TURNS):
        none: frozenset[int] = frozenset()
        deal = ShardDeal(
            none,
            none,
            watches_no_shard=False,
            ranks={},
            ranks_by_shard=(),
            peers=count,
            place=place,
        )
        looks = [deal.foreign_shards(begin + turn) or none for turn in range(2 * SHARDS)]
        assert none.union(*looks) == set(range(SHARDS))
        assert looks.count(none) == 2 * SHARDS // NO_SHARD_TURNS
