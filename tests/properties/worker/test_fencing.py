"""No handler goes on beyond its lease, whatever hangs: event loop, heartbeat thread or network.

A worker, an operator and the API server in memory live in virtual time. At moments of the search's
choice the worker's event loop or its heartbeat thread hangs for a while, or nothing that it sends
arrives. One of its handlers runs in the event loop and one in a process of its own; both write down
what they do, every quarter of a second.
"""

import asyncio
import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncjob.names import GROUP, JOBS
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.handlers import ISOLATED, RecordedCall
from asyncjob_simulation.isolated import start_isolated
from asyncjob_simulation.processes import HEARTBEAT, MAIN
from asyncjob_simulation.quiet_cluster import Object, QuietCluster, play
from asyncjob_worker.isolation.executor import HandlerExecutor
from support.judging.planted_bugs import BugSearch

LEASE_SECONDS: Final = 6
NETWORK: Final = "network"


@dataclass(frozen=True)
class Hang:
    """Something of a worker that does not go on for a while. Times are in seconds."""

    what: str
    begins: float
    lasts: float


HANGS: Final = st.lists(
    st.builds(
        Hang,
        st.sampled_from([MAIN, HEARTBEAT, NETWORK]),
        st.integers(0, 40).map(lambda halves: halves / 2),
        st.integers(1, 24).map(lambda halves: halves / 2),
    ),
    min_size=1,
    max_size=4,
)


class Judge:
    """Compares each step of a handler with the lease that the API server has stored."""

    def __init__(self, cluster: QuietCluster) -> None:
        self._cluster = cluster
        self._renewals: dict[tuple[str, int], int] = {}
        self._ends: dict[tuple[str, int], float] = {}
        self.steps = 0
        self.broken: list[str] = []

    def on_step(self, run: RecordedCall) -> None:
        """Judge one step. A handler is stopped within a moment after what stops it has hung.

        A lease lasts from when the API server has stored it. That is seen at the next step of a
        handler, a quarter of a second later at most.
        """
        self.steps += 1
        now, attempt = self._cluster.loop.time(), (run.uid, run.attempt)
        job = self._cluster.cluster.network.server.storage.get((GROUP, JOBS), (NAMESPACE, run.name))
        status: Any = (job or {}).get("status", {})
        if status.get("phase") == "Running" and status["attempt"] == run.attempt:
            lease = status["lease"]
            if self._renewals.get(attempt) != lease["renewals"]:
                self._renewals[attempt] = lease["renewals"]
                self._ends[attempt] = now + lease["durationSeconds"]
        late = now - self._ends.get(attempt, now)
        if late > 0 and not run.stood_still(now):
            self.broken.append(f"{run.name} goes on {late:.2f} s after the end of its lease")


async def two_handlers(hangs: Sequence[Hang], cluster: QuietCluster) -> Object:
    """Run two handlers on one worker, with these hangs, and judge each of their steps."""
    judge = Judge(cluster)
    cluster.handlers.on_step = judge.on_step
    payload = {"steps": 120, "pause": 0.25, "failures": 0}
    cluster.submit("loop", leaseDurationSeconds=LEASE_SECONDS, payload=payload)
    cluster.submit("process", ISOLATED, leaseDurationSeconds=LEASE_SECONDS, payload=payload)
    await asyncio.sleep(1.0)
    [worker] = cluster.handlers.containers()
    for hang in hangs:
        if hang.what == NETWORK:
            cluster.loop.call_later(hang.begins, _cut_off, cluster, worker.name, hang.lasts)
        else:
            cluster.loop.call_later(hang.begins, worker.block, hang.lasts, hang.what)
    await asyncio.sleep(40.0)
    return {"steps": judge.steps, "broken": judge.broken}


def judged(hangs: Sequence[Hang]) -> None:
    """Play the story of two handlers, and fail for any step beyond a lease; tell the last."""
    with patch.object(HandlerExecutor, "_start_process", start_isolated):
        end = play(1, partial(two_handlers, hangs))
    assert end["steps"], "no handler ran"
    assert not end["broken"], end["broken"][-1]


def _cut_off(cluster: QuietCluster, worker: str, seconds: float) -> None:
    until, cut_until = cluster.loop.time() + seconds, cluster.cluster.network.cut_until
    cut_until[worker] = max(cut_until.get(worker, 0.0), until)


@pytest.fixture(scope="module", autouse=True)
def _objects_from_before_are_left_out_of_collections() -> Iterator[None]:
    gc.freeze()  # each story ends with a collection, which would else take most of the time
    yield
    gc.unfreeze()


@given(hangs=HANGS)
def test_no_handler_goes_on_beyond_its_lease_whatever_hangs(hangs: list[Hang]) -> None:
    judged(hangs)


@pytest.mark.parametrize("bug", ["killed by event loop", "fenced by one thread"])
def test_the_search_finds_what_only_one_thread_stops(bug: str, bug_search: BugSearch) -> None:
    broken = "after the end of its lease"
    bug_search.finds(bug, HANGS, judged, broken=broken, at_most=500)
