"""Which shards a worker watches: assigned among the workers that have announced the same types.

With few workers each watches all jobs, which costs little. From `MIN_PEERS` on each shard is
watched by two of them: its owner claims at once, its deputy where the owner does not. A few also
watch the jobs whose label names no shard. Pure.

Each worker deals alone, from the Leases that it sees. Two that see different ones may leave a shard
to nobody for a moment, and any idle worker looks at such a shard before long.
"""

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from asyncjob.shards import SHARDS
from asyncjob_worker.claiming.partitions import PARTITIONS, Ranks, assign_partitions
from asyncjob_worker.claiming.selection import Source

MIN_PEERS: Final = 5
"""The number of workers of a kind from which on they deal the shards. Each shard is watched by two,
and looks come on top of that: with four there would be little to save."""

WATCHERS_OF_NO_SHARD: Final = 3
"""Of each kind, for jobs whose label names no shard: one may be full, and one frozen."""

NO_SHARD_TURNS: Final = 4
"""One look of this many is at the jobs without a shard."""

FOREIGN_RANKS: Final = range(2, 8)
"""For jobs found by a look, after owner and deputy. Few look at a shard at a time: they need not
wait for each other long, and seldom have the same rank for a job."""


@dataclass(frozen=True, slots=True)
class ShardDeal:
    """One worker's part, and where its looks at other shards begin."""

    own: frozenset[int]
    deputy: frozenset[int]
    watches_no_shard: bool
    ranks: Mapping[Source, Ranks]
    ranks_by_shard: Sequence[int]
    """For jobs that the watch of all jobs tells of, until the shards are watched: the ranks that
    the peers have for them that watch theirs already."""

    peers: int
    place: int
    """Number of this worker among its peers."""

    def foreign_shards(self, turn: int) -> frozenset[int] | None:
        """Return the shards to look at in this turn: as many as come to one of all workers.

        None of them: look at the jobs without a shard, which are many where nobody labels them.
        None: there is nothing to look at. Turns are counted by a clock that all have in common, so
        that each shard is looked at in most turns.
        """
        # The difference: by the sum, all workers would pass over the same shards in all turns. And
        # one turn later in each round, or this worker would never look at a quarter of them.
        number = turn + turn // SHARDS - self.place
        if not self.watches_no_shard and number % NO_SHARD_TURNS == 0:
            return frozenset()
        share = -(-SHARDS // self.peers)
        first = (self.place + turn) * share
        looked_at = {(first + step) % SHARDS for step in range(share)}
        return frozenset(looked_at - self.own - self.deputy) or None


def deal_shards(worker: str, peers: Iterable[str]) -> ShardDeal | None:
    """Return this worker's part among its peers; None if they are few."""
    names = tuple(sorted({*peers, worker}))
    if len(names) < MIN_PEERS:
        return None
    owners, deputies = _deal(names)
    watchers = sorted(names, key=lambda one: _scores(one)[-1], reverse=True)[:WATCHERS_OF_NO_SHARD]
    place = names.index(worker)
    own = frozenset(shard for shard in range(SHARDS) if owners[shard] == worker)
    deputy = frozenset(shard for shard in range(SHARDS) if deputies[shard] == worker)
    return ShardDeal(
        own=own,
        deputy=deputy,
        watches_no_shard=worker in watchers,
        ranks=_ranks(worker, names, watchers),
        ranks_by_shard=[
            0 if shard in own else 1 if shard in deputy else _foreign_rank(place + shard)
            for shard in range(SHARDS)
        ],
        peers=len(names),
        place=place,
    )


def _ranks(worker: str, names: Iterable[str], watchers: Iterable[str]) -> Mapping[Source, Ranks]:
    among_all = assign_partitions(worker, names)
    return {
        Source.OWN: (0,) * PARTITIONS,
        Source.DEPUTY: (1,) * PARTITIONS,
        Source.PRIORITY: among_all,
        Source.NO_SHARD: assign_partitions(worker, watchers),
        Source.FOREIGN: [_foreign_rank(rank) for rank in among_all],
    }


def _foreign_rank(number: int) -> int:
    return FOREIGN_RANKS[number % len(FOREIGN_RANKS)]


# All workers of a process, in tests and in the simulation, deal the same.
@lru_cache(maxsize=8)
def _deal(names: tuple[str, ...]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the owner and the deputy of each shard: by rendezvous hash, nobody more than a share.

    Without that limit, of 64 workers more than a third would own no shard.
    """
    owners = _choose(names, [()] * SHARDS, -(-SHARDS // len(names)), dict.fromkeys(names, 0))
    owned = {name: owners.count(name) for name in names}
    taken = [(owner,) for owner in owners]
    return owners, _choose(names, taken, -(-2 * SHARDS // len(names)), owned)


def _choose(
    names: Sequence[str], taken: Sequence[Sequence[str]], limit: int, load: dict[str, int]
) -> Sequence[str]:
    """Return a worker for each shard, none of those that have it, each up to the limit."""
    chosen = []
    for shard in range(SHARDS):
        others = [name for name in names if name not in taken[shard]]
        free = [name for name in others if load[name] < limit] or others
        best = max(free, key=lambda name: _scores(name)[shard])
        load[best] += 1
        chosen.append(best)
    return chosen


@lru_cache(maxsize=256)
def _scores(worker: str) -> Sequence[int]:
    """Return a worker's score for each shard, and one more for the jobs of none."""
    digest = hashlib.shake_128(f"shards/{worker}".encode()).digest((SHARDS + 1) * 8)
    return struct.unpack(f"{SHARDS + 1}Q", digest)
