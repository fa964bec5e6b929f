"""What people are told of many jobs at once: one Event, not one for each."""

from collections.abc import Mapping
from typing import Any

import pytest

from asyncjob_operator.controllers.events import (
    STORM_JOBS,
    STORM_SECONDS,
    SUMMARY_SECONDS,
    UNSERVED_SECONDS,
    RecoveryStormEvents,
    UnservedQueueEvents,
)
from asyncjob_operator.core.events import HOUR, EventReason, KubernetesEvent, event_body, job_event
from support.objects.snapshots import job
from support.parts.event_recorder import EventRecorderHarness

Queue = tuple[str, str]


class EventLog:
    """Hears what is told."""

    def __init__(self) -> None:
        self.heard: list[KubernetesEvent] = []
        self.now = 0.0

    def tell(self, told: KubernetesEvent) -> None:
        self.heard.append(told)

    def storm_events(self) -> RecoveryStormEvents:
        return RecoveryStormEvents(self.tell, lambda: self.now)


def test_many_recoveries_within_a_minute_are_told_once_for_the_namespace() -> None:
    log = EventLog()
    storm_events = log.storm_events()
    for _ in range(STORM_JOBS + 5):
        storm_events.on_recovered("ns", "WorkerGone")
    storm_events.on_recovered("calm", "WorkerGone")
    [told] = log.heard
    assert (told.kind, told.reason, told.min_interval) == (
        "Namespace",
        EventReason.RECOVERY_STORM,
        HOUR,
    )
    assert str(STORM_JOBS) in told.message
    assert "WorkerGone" in told.message


def test_as_many_recoveries_over_a_longer_time_are_no_storm() -> None:
    log = EventLog()
    storm_events = log.storm_events()
    for _ in range(3 * STORM_JOBS):
        storm_events.on_recovered("ns", "WorkerGone")
        log.now += STORM_SECONDS / (STORM_JOBS - 2)
    assert log.heard == []


def unserved_queue(
    log: EventLog, ages: Mapping[Queue, float], crews: Mapping[Queue, tuple[int, int]] | None
) -> UnservedQueueEvents:
    async def look() -> Mapping[Queue, float]:
        return ages

    return UnservedQueueEvents(look, lambda: crews, log.tell)


@pytest.mark.parametrize("crews", [{}, {("ns", "mail"): (0, 0)}])
async def test_a_queue_in_which_jobs_wait_without_workers_is_told_of(
    crews: Mapping[Queue, tuple[int, int]],
) -> None:
    log = EventLog()
    await unserved_queue(log, {("ns", "mail"): UNSERVED_SECONDS + 1}, crews).check()
    [told] = log.heard
    assert (told.kind, told.name, told.reason, told.min_interval) == (
        "AsyncQueue",
        "mail",
        EventReason.NO_WORKERS,
        HOUR,
    )
    body: Any = event_body(told, "name", "me", "now")
    assert body["involvedObject"]["kind"] == "AsyncQueue"
    assert body["type"] == "Warning"


@pytest.mark.parametrize(
    ("age", "crews"),
    [
        (UNSERVED_SECONDS - 1, {}),
        (UNSERVED_SECONDS + 1, {("ns", "mail"): (1, 4)}),
        (UNSERVED_SECONDS + 1, None),
    ],
    ids=["not for long", "with a worker", "where nobody can tell"],
)
async def test_nothing_is_told_of_a_queue(
    age: float, crews: Mapping[Queue, tuple[int, int]] | None
) -> None:
    log = EventLog()
    await unserved_queue(log, {("ns", "mail"): age}, crews).check()
    assert log.heard == []


async def test_what_was_dropped_is_summed_up_once_per_namespace_after_a_while() -> None:
    harness = EventRecorderHarness()
    for number in range(1000):
        harness.recorder.record(job_event(job(name=f"job-{number}"), "QueueTimeout", "late"))
    await harness.post()
    before = harness.posted
    harness.now += SUMMARY_SECONDS
    for _ in range(2):
        harness.recorder.record(job_event(job(name="another"), "QueueTimeout", "late"))
        await harness.post()
    bodies: list[Any] = [body for _, _, body in harness.session.requests]
    [summary] = [body for body in bodies if body["reason"] == EventReason.EVENTS_LEFT_OUT]
    assert summary["message"].startswith(f"{1000 - before} Events")
    assert summary["involvedObject"]["kind"] == "Namespace"
