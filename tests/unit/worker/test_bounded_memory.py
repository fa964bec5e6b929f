"""However many jobs are queued, and however they come and go, a worker keeps a bounded number."""

from collections.abc import Iterable

import pytest

from asyncjob import columns
from asyncjob.json_types import Json
from asyncjob.kube import WatchEvent
from asyncjob_worker.claiming.backlog import MAX_STALE_ENTRIES, Backlog
from asyncjob_worker.claiming.feed import BacklogFeed
from asyncjob_worker.claiming.job_rows import RowReader
from asyncjob_worker.claiming.partitions import PARTITIONS
from asyncjob_worker.claiming.selection import JobSelection
from asyncjob_worker.settings import Settings
from support.parts.callbacks import ignore
from support.parts.worker_parts import candidate

ROWS = 200_000
ONE_TIDYING = MAX_STALE_ENTRIES + 100
LIMIT = Settings().max_backlog

OWN = [0] * PARTITIONS
OTHERS = [1] * PARTITIONS


def entries(backlog: Backlog) -> int:
    """Return how many names and candidates there are in all places where a backlog keeps some."""
    filed = 0
    for level in backlog._buckets.values():
        for lane in level.queues.values():
            filed += len(lane.own) + len(lane.deferred)
            filed += sum(len(waiting) for waiting in lane.foreign.values())
    return len(backlog) + filed


def rows(kind: str, names: Iterable[str], type_: str = "echo") -> Iterable[WatchEvent]:
    header: list[Json] = [{"name": columns.NAME}, {"name": columns.TYPE}]
    for name in names:
        table: dict[str, Json] = {
            "metadata": {"resourceVersion": "7"},
            "columnDefinitions": header,
            "rows": [{"cells": [name, type_]}],
        }
        yield WatchEvent(kind, table)


def fed(backlog: Backlog, events: Iterable[WatchEvent]) -> None:
    """Let a feed take in these events."""
    feed = BacklogFeed(
        backlog,
        JobSelection("default"),
        types={"echo"},
        clock=lambda: 0.0,
        on_candidate=ignore,
    )
    reader = RowReader()
    for event in events:
        candidate = reader.read(event.object, event.resource_version)
        feed.update(candidate, deleted=event.type == "DELETED")


def a_backlog(ranks: list[int], limit: int = LIMIT) -> Backlog:
    backlog = Backlog(takeover_delay=1.0, limit=limit)
    backlog.reassign(ranks, 0.0)
    return backlog


@pytest.mark.parametrize("ranks", [OWN, OTHERS], ids=["own", "others"])
def test_of_200000_queued_jobs_as_many_are_kept_as_the_limit_says(ranks: list[int]) -> None:
    backlog = a_backlog(ranks)
    fed(backlog, rows("ADDED", (f"j{number}" for number in range(ROWS))))
    assert len(backlog) == LIMIT
    assert entries(backlog) == 2 * LIMIT
    assert backlog.overflowed


def test_of_types_that_the_app_does_not_know_nothing_is_kept() -> None:
    backlog = a_backlog(OWN)
    fed(backlog, rows("ADDED", (f"j{number}" for number in range(ROWS // 10)), type_="unknown"))
    assert entries(backlog) == 0
    assert not backlog.overflowed


@pytest.mark.parametrize("ranks", [OWN, OTHERS], ids=["own", "others"])
def test_jobs_that_come_and_go_unclaimed_leave_nothing_behind(ranks: list[int]) -> None:
    """As while the queue is paused: nothing is taken out, and so nothing is tidied by that."""
    backlog = a_backlog(ranks)
    for number in range(20_000):
        backlog.put(candidate(f"j{number}"), 0.0)
        backlog.drop(f"j{number}")
    assert len(backlog) == 0
    assert entries(backlog) < 5_000


def test_one_job_that_comes_back_again_and_again_leaves_nothing_behind() -> None:
    backlog = a_backlog(OTHERS)
    for _ in range(20_000):
        backlog.put(candidate("j"), 0.0)
        backlog.drop("j")
    backlog.put(candidate("j"), 0.0)
    assert entries(backlog) < 5_000
    assert backlog.pop(0.0) is None
    assert backlog.pop(1.0)
    assert backlog.pop(9.0) is None


@pytest.mark.parametrize("ranks", [OWN, OTHERS], ids=["own", "others"])
def test_tidying_keeps_the_order_of_arrival(ranks: list[int]) -> None:
    backlog = a_backlog(ranks)
    for name in ("first", "second", "first", "third"):
        backlog.drop(name)
        backlog.put(candidate(name), 0.0)
    for number in range(ONE_TIDYING):
        backlog.put(candidate(f"j{number}"), 0.0)
        backlog.drop(f"j{number}")
    backlog.put(candidate("last"), 0.0)
    for level in backlog._buckets.values():
        level.own_exhausted_at = 0.0
    taken = [backlog.pop(1.0) for _ in range(5)]
    assert [each and each.name for each in taken] == ["first", "second", "third", "last", None]
