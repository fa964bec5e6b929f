"""What a look at jobs that others watch brings into the backlog."""

from typing import Any

import pytest

from asyncjob import columns
from asyncjob.errors import InvalidError
from asyncjob.kube.pacing import TimeSlice
from asyncjob.shards import shard_of
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.feed import BacklogFeed
from asyncjob_worker.claiming.job_look import MAX_BYTES, JobLook
from asyncjob_worker.claiming.partitions import PARTITIONS
from asyncjob_worker.claiming.selection import JobSelection, Source
from asyncjob_worker.metrics import JobWatchObserver
from support.parts.callbacks import ignore
from support.parts.worker_parts import ScriptedSession, candidate

NAMES = (columns.NAME, columns.TYPE, columns.SUSPEND)
LOOK = JobSelection("default", Source.FOREIGN, frozenset({shard_of("a")}))


def table(*rows: tuple[Any, ...]) -> dict[str, Any]:
    """Return a list of jobs: name and version, then type and `suspend` where they matter."""
    return {
        "metadata": {"resourceVersion": "99"},
        "columnDefinitions": [{"name": column} for column in NAMES],
        "rows": [
            {
                "cells": [name, *(rest or ("echo",))],
                "object": {"metadata": {"name": name, "resourceVersion": version}},
            }
            for name, version, *rest in rows
        ],
    }


class LookHarness:
    """A look and the backlog that it fills."""

    def __init__(self, *answers: Any) -> None:
        self.scripted = ScriptedSession(send=answers)
        self.backlog = Backlog(takeover_delay=1.0, limit=100)
        self.backlog.reassign_sources({Source.FOREIGN: (2,) * PARTITIONS}, 0.0)
        self.calls = 0
        self.observer = JobWatchObserver(ignore)
        feed = BacklogFeed(
            self.backlog, LOOK, types={"echo"}, clock=lambda: 0.0, on_candidate=self.call
        )
        self.look = JobLook(self.scripted.session, feed, self.observer)

    def call(self) -> None:
        self.calls += 1

    def versions(self, *names: str) -> list[str | None]:
        return [self.backlog.version_of(name) for name in names]


async def test_a_look_lists_what_is_selected_from_the_cache() -> None:
    harness = LookHarness(table(("a", "7"), ("b", "8")))
    await harness.look.refresh()
    [call] = harness.scripted.made("send")
    assert call.path.endswith("/namespaces/ns/asyncjobs")
    assert call.params == {**LOOK.params(), "resourceVersion": "0"}
    assert call.body.max_bytes == MAX_BYTES
    assert harness.versions("a", "b") == ["7", "8"]
    assert (harness.calls, harness.observer.events) == (2, 2)
    assert harness.backlog.holds(LOOK)
    assert harness.look.feed.passed_over == 0


async def test_what_is_gone_the_next_time_is_dropped() -> None:
    harness = LookHarness(table(("a", "7"), ("b", "8")), table(("b", "9")))
    await harness.look.refresh()
    await harness.look.refresh()
    assert harness.versions("a", "b") == [None, "9"]
    assert harness.backlog.holds(LOOK)


async def test_what_is_being_claimed_here_is_not_brought_in_again() -> None:
    harness = LookHarness(table(("a", "7")))
    await harness.look.refresh()
    assert harness.backlog.pop(0.0) is None
    taken = harness.backlog.pop(2.0)
    assert taken
    assert taken.name == "a"
    await harness.look.refresh()
    assert not harness.backlog.holds(LOOK)


async def test_what_comes_back_in_a_later_version_is() -> None:
    harness = LookHarness(table(("a", "7")), table(("a", "9")))
    await harness.look.refresh()
    harness.backlog.drop("a")
    await harness.look.refresh()
    assert harness.versions("a") == ["9"]


async def test_after_the_backlog_was_cleared_all_is_brought_in_again() -> None:
    harness = LookHarness(table(("a", "7")))
    await harness.look.refresh()
    harness.backlog.clear()
    harness.look.relist()
    await harness.look.refresh()
    assert harness.versions("a") == ["7"]


async def test_a_backlog_that_is_cleared_during_a_list_is_filled_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = LookHarness(table(("a", "7"), ("b", "8")))
    turns = iter([harness.backlog.clear, harness.look.relist])

    async def clears(_: object) -> None:
        for turn in turns:
            turn()

    monkeypatch.setattr(TimeSlice, "yield_if_due", clears)
    await harness.look.refresh()
    assert harness.versions("a", "b") == [None, "8"]
    await harness.look.refresh()
    assert harness.versions("a", "b") == ["7", "8"]


async def test_a_later_state_that_a_watch_has_told_of_stays() -> None:
    harness = LookHarness(table(("a", "7")))
    harness.backlog.put(candidate("a", resource_version="10"), 0.0, JobSelection("default"))
    await harness.look.refresh()
    assert harness.versions("a") == ["10"]


async def test_jobs_of_others_types_and_suspended_ones_are_not_brought_in() -> None:
    harness = LookHarness(table(("a", "7", "other"), ("b", "8", "echo", True)))
    await harness.look.refresh()
    assert harness.versions("a", "b") == [None, None]
    assert harness.look.feed.passed_over == 0, "one of a known type was among them"


async def test_it_is_counted_how_many_were_passed_over_if_all_were() -> None:
    harness = LookHarness(table(("a", "7", "other"), ("b", "8", "another")))
    await harness.look.refresh()
    assert harness.look.feed.passed_over == 2


async def test_a_refused_list_is_raised() -> None:
    harness = LookHarness(InvalidError("field label not supported: spec.priority"))
    with pytest.raises(InvalidError):
        await harness.look.refresh()
