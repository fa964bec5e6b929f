"""How the backlog is kept in step with the API server."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from asyncjob import columns
from asyncjob.errors import ExpiredError, ObjectNotFoundError, UnknownOutcomeError
from asyncjob.json_types import JsonObject
from asyncjob.kube import WatchEvent
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.feed import BacklogFeed
from asyncjob_worker.claiming.partitions import PARTITIONS
from asyncjob_worker.claiming.selection import JobSelection, Source
from asyncjob_worker.claiming.watcher import QueuedJobWatcher
from asyncjob_worker.metrics import JobWatchObserver
from support.parts.callbacks import ignore
from support.parts.worker_parts import ScriptedSession, candidate

NAMES = (columns.NAME, columns.TYPE, columns.SUSPEND, columns.ADMITTED)
Step = WatchEvent | Exception


def row(
    kind: str,
    version: str,
    name: str = "j",
    *,
    of_type: str = "echo",
    suspend: bool | None = None,
    admitted: bool | None = None,
) -> WatchEvent:
    table: dict[str, Any] = {
        "metadata": {"resourceVersion": version},
        "columnDefinitions": [{"name": column} for column in NAMES],
        "rows": [{"cells": [name, of_type, suspend, admitted]}],
    }
    return WatchEvent(kind, table)


def bookmark(version: str) -> WatchEvent:
    return WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": version}, "rows": []})


class Watches:
    """One scripted watch after the other; the last one stays open."""

    def __init__(self, *scripts: Sequence[Step]) -> None:
        self.scripts = list(scripts)
        self.versions: list[str] = []
        self.is_watched: Callable[[], bool] = lambda: False
        self.watched_before: list[bool] = []
        self.all_seen = asyncio.Event()

    def play(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("asyncjob_worker.claiming.watcher.open_watch", self.open)
        monkeypatch.setattr("asyncjob_worker.claiming.watcher.read_events", self.read)

    async def open(self, _: object, __: str, params: JsonObject, *, table: bool) -> Sequence[Step]:
        assert table
        self.versions.append(str(params["resourceVersion"]))
        self.watched_before.append(self.is_watched())
        return self.scripts.pop(0)

    async def read(self, script: Sequence[Step]) -> AsyncGenerator[WatchEvent]:
        for step in script:
            if isinstance(step, Exception):
                raise step
            yield step
        if not self.scripts:
            self.all_seen.set()
            await asyncio.Event().wait()


class BacklogSyncHarness:
    """A feed and the backlog that it fills."""

    def __init__(self, limit: int = 100) -> None:
        self.backlog = Backlog(takeover_delay=1.0, limit=limit)
        self.calls = 0
        feed = BacklogFeed(
            self.backlog,
            JobSelection("default"),
            types={"echo"},
            clock=lambda: 0.0,
            on_candidate=self.call,
        )
        self.feed = QueuedJobWatcher(ScriptedSession().session, feed, JobWatchObserver(ignore))

    def call(self) -> None:
        self.calls += 1

    def names(self) -> list[str]:
        found = []
        while (taken := self.backlog.pop(0)) is not None:
            found.append(f"{taken.name}@{taken.resource_version}")
        return found


@pytest.fixture
async def run(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """Run a feed over scripted watches until they are through; pauses are skipped."""
    running: list[asyncio.Task[None]] = []
    sleep = asyncio.sleep

    async def at_once(_: float) -> None:
        await sleep(0)

    async def go(harness: BacklogSyncHarness, *scripts: Sequence[Step]) -> Watches:
        watches = Watches(*scripts)
        watches.is_watched = lambda: harness.feed.is_watching
        watches.play(monkeypatch)
        monkeypatch.setattr("asyncjob_worker.claiming.watcher.asyncio.sleep", at_once)
        running.append(asyncio.ensure_future(harness.feed.run()))
        await watches.all_seen.wait()
        return watches

    yield go
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def test_queued_jobs_of_known_types_are_taken_in(run: Any) -> None:
    harness = BacklogSyncHarness()
    await run(harness, [row("ADDED", "5", "a"), row("ADDED", "3", "b", of_type="unknown")])
    assert (harness.names(), harness.calls) == (["a@5"], 1)


async def test_a_job_that_is_no_longer_queued_is_dropped(run: Any) -> None:
    harness = BacklogSyncHarness()
    await run(harness, [row("ADDED", "5", "a"), row("DELETED", "6", "a")])
    assert harness.names() == []


async def test_a_job_with_a_gate_is_taken_in_once_it_is_admitted(run: Any) -> None:
    harness = BacklogSyncHarness()
    gated = row("ADDED", "5", "a", suspend=True)
    await run(harness, [gated, row("MODIFIED", "6", "a", suspend=True, admitted=True)])
    assert harness.names() == ["a@6"]


async def test_a_known_job_that_gets_a_gate_is_dropped(run: Any) -> None:
    harness = BacklogSyncHarness()
    await run(harness, [row("ADDED", "5", "a"), row("MODIFIED", "6", "a", suspend=True)])
    assert harness.names() == []


async def test_a_watch_that_breaks_off_before_all_was_seen_is_begun_again(run: Any) -> None:
    harness = BacklogSyncHarness()
    broken = [row("ADDED", "9", "a"), UnknownOutcomeError("reset")]
    watches = await run(harness, broken, [row("ADDED", "9", "a"), row("ADDED", "4", "b")])
    assert watches.versions == ["", ""]
    assert harness.names() == ["a@9", "b@4"]


async def test_after_a_bookmark_a_watch_goes_on_where_it_was(run: Any) -> None:
    harness = BacklogSyncHarness()
    first = [row("ADDED", "4", "a"), bookmark("9"), row("ADDED", "11", "b")]
    watches = await run(
        harness, [*first, UnknownOutcomeError("reset")], [row("DELETED", "12", "a")]
    )
    assert watches.versions == ["", "11"]
    assert harness.names() == ["b@11"]


async def test_a_version_that_is_too_old_means_to_begin_again(run: Any) -> None:
    harness = BacklogSyncHarness()
    first = [row("ADDED", "4", "gone"), bookmark("9"), ExpiredError("too old")]
    watches = await run(harness, first, [row("ADDED", "20", "a")])
    assert watches.versions == ["", ""]
    assert harness.names() == ["a@20"]


async def test_missing_crds_are_waited_for_with_words_on_what_to_do(run: Any) -> None:
    harness = BacklogSyncHarness()
    with capture_logs() as logs:
        await run(harness, [ObjectNotFoundError("404")], [row("ADDED", "5", "a")])
    assert "kubectl apply -f crds/" in logs[0]["error"]
    assert harness.names() == ["a@5"]


async def test_jobs_count_as_watched_from_the_servers_agreement_to_an_error(run: Any) -> None:
    harness = BacklogSyncHarness()
    broken = [row("ADDED", "5", "a"), UnknownOutcomeError("reset")]
    watches = await run(harness, broken, [bookmark("9")], [row("ADDED", "10", "b")])
    assert watches.watched_before == [False, False, True]
    assert harness.feed.is_watching


async def test_looking_again_reads_everything_again(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = BacklogSyncHarness(limit=1)
    both = [row("ADDED", "4", "a"), row("ADDED", "5", "b"), bookmark("9")]
    await run(harness, both)
    assert harness.backlog.overflowed
    assert harness.names() == ["a@4"]
    watches = Watches([row("ADDED", "5", "b")])
    watches.play(monkeypatch)
    harness.feed.relist()
    harness.feed.relist()
    await watches.all_seen.wait()
    assert watches.versions == [""]
    assert harness.names() == ["b@5"]


PART = JobSelection("default", Source.OWN, frozenset({1}))


def shared_out(**versions: str) -> BacklogSyncHarness:
    """Return the feed of all jobs, of which a watch of a part has told of these."""
    harness = BacklogSyncHarness()
    harness.backlog.put(candidate("before"), 0)
    harness.backlog.reassign_sources({Source.OWN: [0] * PARTITIONS}, 0)
    for name, version in versions.items():
        harness.backlog.put(candidate(name, resource_version=version), 0, PART)
    return harness


async def test_the_watch_of_all_begins_without_forgetting_what_others_know(run: Any) -> None:
    """It is resumed in an outage, and may be suspended again before it has told of a job."""
    harness = shared_out(j="7")
    await run(harness, [bookmark("9")])
    harness.backlog.drop_selection(None)
    assert harness.names() == ["j@7"]


async def test_a_watch_that_lags_takes_no_job_from_another(run: Any) -> None:
    harness = shared_out(j="7", k="7")
    await run(harness, [row("DELETED", "7"), row("DELETED", "8", "k"), bookmark("9")])
    assert harness.names() == ["j@7"]


async def test_a_job_that_left_one_watch_for_another_ends_with_the_other(run: Any) -> None:
    harness = shared_out(j="7")
    harness.backlog.put(candidate("j", resource_version="6"), 0)
    harness.backlog.put(candidate("j", resource_version="7"), 0, PART)
    await run(harness, [bookmark("9")])
    harness.feed.feed.update(candidate("j", resource_version="7"), deleted=True)
    harness.backlog.drop_selection(PART)
    assert harness.names() == []
