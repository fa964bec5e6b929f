"""What becomes of the jobs beside poison pills, which kill the whole process of their worker."""

import random
from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

from asyncjob.lifecycle.claim import Candidate
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.queue_state import LiveWorkers, QueueState
from asyncjob_worker.claiming.selector import ClaimSelector
from support.parts.callbacks import ignore
from support.parts.worker_parts import candidate

SLOTS = 16
TICK = 0.5
MAX_CRASHES = 3


class PoisonPillSimulation:
    """One worker after the other, with the time passing in between."""

    def __init__(self, seed: int) -> None:
        self.now = 100.0
        self.chance = random.Random(seed)
        self.crashes = Counter[str]()
        self.open: dict[str, float] = {f"job-{n}": self.chance.uniform(0.5, 8) for n in range(60)}
        self.pills = {f"pill-{n}": self.chance.uniform(0.5, 4) for n in range(12)}
        self.open |= self.pills

    def live(self) -> None:
        """Run one process until it is killed or nothing is left."""
        backlog = Backlog(takeover_delay=1.0, limit=1000)
        queue = QueueState(lambda: None, on_unlimited=ignore)
        queue.replace([])
        choice = ClaimSelector(
            backlog=backlog,
            queue=queue,
            live_workers=cast("LiveWorkers", SimpleNamespace(synced=True)),
            clock=lambda: self.now,
            relist=lambda: None,
        )
        names = list(self.open)
        self.chance.shuffle(names)
        for name in names:
            backlog.put(candidate(name, crashes=self.crashes[name]), self.now)
        at_work: dict[Candidate, float] = {}
        while self.open:
            while len(at_work) < SLOTS and (picked := choice.select()):
                at_work[picked] = self.now + self.open[picked.name]
            assert at_work or choice.ready_at() is not None, "nobody will ever be claimed"
            self.now += TICK
            for over in [job for job, until in at_work.items() if until <= self.now]:
                if over.name in self.pills:
                    self._crash(at_work)
                    return
                del at_work[over], self.open[over.name]
                choice.done(over)

    def _crash(self, at_work: dict[Candidate, float]) -> None:
        for job in at_work:
            self.crashes[job.name] += 1
            if self.crashes[job.name] > MAX_CRASHES:
                del self.open[job.name]


@pytest.mark.parametrize("seed", range(20))
def test_a_job_beside_many_pills_is_charged_once_and_each_pill_ends(seed: int) -> None:
    simulation = PoisonPillSimulation(seed)
    while simulation.open:
        simulation.live()
    innocent = {
        name: count for name, count in simulation.crashes.items() if name not in simulation.pills
    }
    assert max(innocent.values()) == 1
    assert {simulation.crashes[pill] for pill in simulation.pills} == {MAX_CRASHES + 1}
