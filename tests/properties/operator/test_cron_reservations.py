"""Exactly one run per time, and no overlap where none may be: any interleaving, crash and clock."""

import asyncio
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from support.objects.schedules import seconds
from support.parts.cron_replicas import CronJobStore, Replica, store_of

REPLICAS = 3
DAY = 86_400.0

which = st.integers(0, REPLICAS - 1)
steps = st.tuples(st.just("step"), which, st.integers(1, 8))
events = st.one_of(
    steps,
    steps,
    steps,
    st.tuples(st.just("run"), which, st.just(40)),
    st.tuples(st.just("run"), which, st.just(40)),
    st.tuples(st.just("advance"), st.sampled_from([1, 2, 4, 6, 16, 16, 3600]), st.just(0)),
    st.tuples(st.sampled_from(["finish", "delete"]), st.just(0), st.just(0)),
    st.tuples(st.sampled_from(["finish", "delete"]), st.just(0), st.just(0)),
    st.tuples(st.just("crash"), which, st.just(0)),
    st.tuples(st.just("clock"), which, st.sampled_from([-DAY, -600, 0, 600, DAY])),
    st.tuples(st.just("trigger"), st.just(0), st.just(0)),
)
policies = st.sampled_from(["Allow", "Forbid", "Replace"])


class Play:
    """A script, played by several replicas that all believe to lead."""

    def __init__(self, store: CronJobStore) -> None:
        self.store = store
        self.count = REPLICAS
        self.replicas = [Replica(store, "r" * (number + 1)) for number in range(REPLICAS)]

    async def do(self, event: str, which: int, how: float) -> None:
        """Let one thing happen."""
        if event == "step":
            for _ in range(int(how)):
                await self.replicas[which].step()
        elif event == "run":
            await self.replicas[which].run()
        elif event == "crash":
            await self.replicas[which].crash()
            self.count += 1
            self.replicas[which] = Replica(self.store, "r" * self.count)
        else:
            self._happen(event, which, how)

    def _happen(self, event: str, which: int, how: float) -> None:
        store = self.store
        match event:
            case "clock":
                self.replicas[which].skew = how
            case "advance":
                store.now += which
            case "trigger":
                store.trigger()
            case _:
                self._end_or_delete(event)

    def _end_or_delete(self, event: str) -> None:
        store = self.store
        if event == "finish":
            for name in store.live:
                store.finish(name)
            return
        # Whoever deletes the job of a run within the seconds of its creation may get it again.
        over = [name for name in store.jobs if name not in (*store.live, *store.reserved)]
        for name in over:
            store.delete(name)

    async def come_to_rest(self) -> None:
        """Let one replica with a right clock do all that is left."""
        for replica in self.replicas:
            await replica.crash()
        last = Replica(self.store, "last" * 9)
        for _ in range(20):
            self.store.now += 16
            await last.run(200)
            for name in self.store.live:
                self.store.finish(name)
        await last.crash()


async def play(store: CronJobStore, script: list[tuple[str, int, float]]) -> None:
    whole = Play(store)
    for event, which, how in script:
        await whole.do(event, which, how)
    await whole.come_to_rest()


@settings(max_examples=60, deadline=None)
@given(policies, st.lists(events, max_size=25))
def test_no_time_is_run_twice_and_none_decided_on_is_forgotten(
    policy: str, script: list[tuple[str, int, float]]
) -> None:
    store = store_of(
        concurrencyPolicy=policy, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=1
    )
    asyncio.run(play(store, script))
    assert [name for name, count in Counter(store.created).items() if count > 1] == []
    assert "reserved" not in store.cron["status"]
    if policy != "Allow":
        assert store.overlaps == []
    accounted = len([name for name in store.created if "-t" not in name[7:]])
    missed = store.cron["status"].get("missed", 0)
    settled = store.cron["status"]["settledTime"]
    passed = (seconds(settled[:16]) - seconds("2026-11-20T01:00")) // 3600
    assert accounted + missed == passed
