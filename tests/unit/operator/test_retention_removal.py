"""Removal of finished jobs."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Self, cast

import pytest
from structlog.testing import capture_logs

from asyncjob.errors import ForbiddenError
from asyncjob.json_types import child
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import job_path
from asyncjob_operator.cache.jobs import JobStore
from asyncjob_operator.controllers.retention import (
    RemovalPace,
    RemovalPlanner,
    RetentionController,
    round_robin,
)
from asyncjob_operator.core.events import KubernetesEvent
from asyncjob_operator.core.options import DAY, OPEN_QUEUE, RetentionOptions
from asyncjob_operator.core.retention import FinishedJob
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.in_memory.fake_session import FakeSession
from support.objects.snapshots import EPOCH, at, job, raw, stamp
from support.parts.callbacks import ignore
from support.parts.vitals import quarantine


class RetentionHarness:
    def __init__(self, *, rate: float = 1e9, interval: float = 60.0, **options: float) -> None:
        self.seconds = 0.0
        self.session, self.store, self.leads = FakeSession(), JobStore(), True
        self.told: list[KubernetesEvent] = []
        self.needed: set[str] = set()
        self.of_parents: set[str] = set()
        self.sweep = RetentionController(
            cast("KubeSession", self.session),
            RemovalPlanner(
                self.store,
                queue_of=lambda _namespace, _queue: OPEN_QUEUE,
                options=RetentionOptions(**options),  # type: ignore[arg-type]  # of both kinds
                is_needed=lambda record: record.name in self.needed,
                feeds_parent=lambda record: record.name in self.of_parents,
                now=lambda: at(self.seconds),
                quarantine=quarantine(),
            ),
            RemovalPace(rate, interval),
            now=lambda: at(self.seconds),
            leads=lambda: self.leads,
            record_event=self.told.append,
            metrics=OperatorMetrics(),
            quarantine=quarantine(),
        )

    def finished(
        self,
        name: str,
        age: float,
        namespace: str = "ns",
        *,
        requested: bool = False,
        parent: str = "",
        finalizers: Sequence[str] = (),
    ) -> None:
        completed = stamp(-age)
        body = dict(raw(name, phase="Succeeded", completionTime=completed))
        body["metadata"] = {**child(body, "metadata"), "finalizers": list(finalizers)}
        stored = self.session.put(job_path(namespace, name), body)
        view = job(Phase.SUCCEEDED, name, completionTime=completed)
        version = stored["metadata"]["resourceVersion"]
        fields = {name: getattr(view, name) for name in view.__slots__} | {
            "namespace": namespace,
            "parent_uid": parent,
        }
        changed = {"resource_version": version, "completion_write_time": completed}
        ended = type(view)(**{**fields, **changed})
        if requested:
            self.store.put(ended)
            self.store.track_pending_request(ended, EPOCH)
        else:
            self.store.compact_finished(ended, EPOCH)

    def names(self) -> set[str]:
        return {record.name for record in self.store.finished()}


async def test_what_somebody_waits_for_stays_however_old_and_however_many_there_are() -> None:
    harness = RetentionHarness(namespace_limit=1)
    for name, age in (("needed", 9), ("old", 8), ("new", 1)):
        harness.finished(name, age * DAY)
    harness.needed.add("needed")
    assert await harness.sweep.run_once(on_progress=ignore) == 1
    assert harness.names() == {"needed", "new"}


async def test_children_of_an_unfinished_parent_stay_until_it_ends() -> None:
    harness = RetentionHarness(max_finished=1, min_age=0)
    for number in range(3):
        harness.finished(f"child-{number}", 9 * DAY, parent="p")
    harness.of_parents = harness.names()
    assert await harness.sweep.run_once(on_progress=ignore) == 0
    harness.of_parents.clear()
    assert await harness.sweep.run_once(on_progress=ignore) == 3


async def test_a_namespace_beyond_its_limit_loses_children_of_unfinished_parents_last() -> None:
    harness = RetentionHarness(namespace_limit=2)
    for number in range(3):
        harness.finished(f"child-{number}", 30 - number, parent="p")
    harness.of_parents = harness.names()
    harness.finished("free", 1)
    assert await harness.sweep.run_once(on_progress=ignore) == 2
    assert harness.names() == {"child-1", "child-2"}
    assert [one.reason for one in harness.told] == ["StoreNearLimit"]


async def test_a_child_whose_parent_is_redriven_meanwhile_stays() -> None:
    harness = RetentionHarness()
    for name in ("child", "free"):
        harness.finished(name, 9 * DAY, parent="p" if name == "child" else "")
    assert await harness.sweep.run_once(lambda: harness.of_parents.add("child")) == 1
    assert harness.names() == {"child"}


async def test_nobody_keeps_a_finished_job_for_ever_by_naming_a_parent() -> None:
    harness = RetentionHarness()
    for name, age in (("child-29", 29), ("child-31", 31)):
        harness.finished(name, age * DAY, parent="p")
    harness.of_parents = harness.names()
    assert await harness.sweep.run_once(on_progress=ignore) == 1
    assert harness.names() == {"child-29"}


async def test_a_removed_job_that_a_finalizer_keeps_is_still_counted() -> None:
    harness = RetentionHarness()
    harness.finished("kept", 31 * DAY, finalizers=["example.com/archive"])
    harness.finished("gone", 31 * DAY)
    assert await harness.sweep.run_once(on_progress=ignore) == 2
    assert harness.names() == {"kept"}


async def test_nobody_keeps_a_finished_job_for_ever_by_waiting_for_it() -> None:
    harness = RetentionHarness()
    for name, age in (("needed-29", 29), ("needed-31", 31)):
        harness.finished(name, age * DAY)
        harness.needed.add(name)
    assert await harness.sweep.run_once(on_progress=ignore) == 1
    assert harness.names() == {"needed-29"}


async def test_nobody_keeps_a_finished_job_for_ever_by_a_request_that_cannot_be_carried_out() -> (
    None
):
    harness = RetentionHarness()
    for name, age in (("requested-29", 29), ("requested-31", 31)):
        harness.finished(name, age * DAY, requested=True)
    assert await harness.sweep.run_once(on_progress=ignore) == 1
    assert harness.names() == {"requested-29"}


async def test_what_is_to_go_is_deleted_exactly_as_it_was_judged() -> None:
    harness = RetentionHarness()
    harness.finished("old", 8 * DAY)
    harness.finished("new", 1 * DAY)
    assert await harness.sweep.run_once(on_progress=ignore) == 1
    [(method, path, body)] = harness.session.writes
    assert (method, path) == ("DELETE", job_path("ns", "old"))
    assert body["preconditions"]["uid"] == "uid-old"
    assert harness.names() == {"new"}


async def test_a_job_that_changed_since_is_left_for_the_next_pass() -> None:
    harness = RetentionHarness()
    harness.finished("old", 8 * DAY)
    harness.session.put(job_path("ns", "old"), harness.session.objects[job_path("ns", "old")])
    assert await harness.sweep.run_once(on_progress=ignore) == 0
    assert harness.names() == {"old"}


async def test_a_job_already_gone_is_forgotten() -> None:
    harness = RetentionHarness()
    harness.finished("old", 8 * DAY)
    harness.session.objects.clear()
    assert await harness.sweep.run_once(on_progress=ignore) == 0
    assert harness.names() == set()


async def test_a_refusal_stops_neither_the_pass_nor_the_next() -> None:
    harness = RetentionHarness()
    for name in ("a", "b"):
        harness.finished(name, 8 * DAY)
    harness.session.fail("DELETE", job_path("ns", "a"), ForbiddenError(status=403))
    assert await harness.sweep.run_once(on_progress=ignore) == 1
    assert harness.names() == {"a"}


async def test_nothing_is_removed_without_the_lead() -> None:
    harness = RetentionHarness()
    harness.finished("old", 8 * DAY)
    harness.leads = False
    assert await harness.sweep.run_once(on_progress=ignore) == 0
    assert harness.session.writes == []


async def test_a_crowded_namespace_loses_its_oldest_whatever_their_age() -> None:
    harness = RetentionHarness(namespace_limit=2)
    for age in (3, 2, 1):
        harness.finished(f"age-{age}", age)
    assert await harness.sweep.run_once(on_progress=ignore) == 1
    assert harness.names() == {"age-2", "age-1"}
    [told] = harness.told
    assert (told.reason, told.kind, told.name) == ("StoreNearLimit", "Namespace", "ns")
    await harness.sweep.run_once(on_progress=ignore)
    assert len(harness.told) == 1


def record(uid: str) -> FinishedJob:
    return FinishedJob(
        uid=uid,
        namespace="ns",
        name="n",
        resource_version="1",
        queue="q",
        phase=Phase.SUCCEEDED,
        completed_at=0.0,
        ttl_seconds_after_finished=None,
        has_dedup_key=False,
        deleting=False,
    )


def test_records_are_hashable_values() -> None:
    assert hash(record("u"))


@pytest.mark.parametrize("limits", [{"max_finished": 2, "min_age": 0}, {"namespace_limit": 2}])
async def test_what_somebody_waits_for_is_not_counted(limits: dict[str, float]) -> None:
    harness = RetentionHarness(**limits)
    for number in range(4):
        harness.finished(f"needed-{number}", number)
    harness.needed.update(harness.names())
    for number in range(3):
        harness.finished(f"free-{number}", 10 + number)
    assert await harness.sweep.run_once(on_progress=ignore) == 1
    assert {name for name in harness.names() if "free" in name} == {"free-0", "free-1"}


async def test_namespaces_take_turns() -> None:
    harness = RetentionHarness()
    for number in range(20):
        harness.finished(f"busy-{number}", 90 * DAY, "busy")
    for number in range(2):
        harness.finished(f"quiet-{number}", 8 * DAY, "quiet")
    assert await harness.sweep.run_once(on_progress=ignore) == 22
    paths = [path for _, path, _ in harness.session.writes]
    assert max(paths.index(job_path("quiet", f"quiet-{number}")) for number in range(2)) < 4


async def test_a_pass_is_as_quick_as_what_finishes_demands() -> None:
    harness = RetentionHarness(rate=1.0, interval=0.2)
    for number in range(50):
        harness.finished(f"job-{number}", 8 * DAY)
    async with asyncio.timeout(20):
        assert await harness.sweep.run_once(on_progress=ignore) == 50


async def test_what_is_refused_is_tried_ever_more_seldom_and_told_once() -> None:
    harness = RetentionHarness()
    harness.finished("kept", 8 * DAY)
    harness.session.fail("DELETE", job_path("ns", "kept"), ForbiddenError("no", status=403))
    tried = []
    with capture_logs() as logs:
        for second in range(200):
            harness.seconds = float(second)
            before = len(harness.session.writes)
            await harness.sweep.run_once(on_progress=ignore)
            if len(harness.session.writes) > before:
                tried.append(second)
    assert 4 <= len(tried) <= 12
    assert tried[-1] - tried[-2] > 4 * (tried[2] - tried[1])
    assert [line["event"] for line in logs] == ["finished job not removed"]
    harness.session.failures.clear()
    harness.seconds += 600
    assert await harness.sweep.run_once(on_progress=ignore) == 1


class LongestTurn:
    """The most CPU time that one turn of the event loop costs while inside, in seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def __aenter__(self) -> Self:
        self._measuring = asyncio.create_task(self._measure())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)
        self._measuring.cancel()

    async def _measure(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            self.seconds = max(self.seconds, time.thread_time() - before)


@pytest.mark.parametrize("age", [8 * DAY, DAY], ids=["old", "beyond the limits"])
async def test_no_loop_is_held_by_fifty_thousand_jobs_of_one_namespace(
    age: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = RetentionHarness(namespace_limit=10_000)
    harness.leads = False
    ended = [
        replace(record(f"uid-{number * 7919 % 50_000}"), completed_at=EPOCH - age - number)
        for number in range(50_000)
    ]
    monkeypatch.setattr(harness.store, "finished", lambda: ended)
    async with LongestTurn() as turn:
        await harness.sweep.run_once(on_progress=ignore)
    assert 0 < turn.seconds < 0.1


def test_turns_cost_nothing_for_those_who_have_none_left() -> None:
    busy, idle = [record("busy")] * 50_000, [record("idle")]
    begun = time.thread_time()
    order = list(round_robin([busy, *[idle] * 2000]))
    assert time.thread_time() - begun < 0.2
    assert len(order) == 52_000
    assert order.index(idle[0]) == 1
