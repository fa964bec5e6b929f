"""Workers that share out shards, in virtual time: with and without faults, no job is lost."""

from typing import Any

import pytest

from asyncjob_simulation.dice import Dice
from asyncjob_simulation.life import simulate
from asyncjob_simulation.swarm import swarm_of
from asyncjob_worker.claiming.shard_watches import ShardWatches
from asyncjob_worker.claiming.sharding import MIN_PEERS

SEEDS = [seed for seed in range(2_000) if min(swarm_of(Dice(seed)).workers) >= MIN_PEERS + 1]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_no_invariant_is_broken_where_shards_are_assigned(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: list[bool] = []
    change = ShardWatches._change

    async def noted(self: Any) -> bool:
        done = await change(self)
        changes.append(done and self.deal is not None)
        return done

    monkeypatch.setattr(ShardWatches, "_change", noted)
    result = simulate(seed)
    assert not result.violations
    assert sum(changes) >= MIN_PEERS, "shards are watched"
