"""What the status of a queue shows."""

import asyncio
from typing import Any

import pytest

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.queue_stats import QueueStats, Throughput, shown_stats, stats_fields
from support.objects.snapshots import raw, stamp
from support.parts.operator_harness import OperatorHarness


def numbers(**changes: Any) -> QueueStats:
    base: dict[str, Any] = {
        "counts": {Phase.RUNNING: 2, Phase.QUEUED: 3},
        "oldest_queued_seconds": 7,
        "workers": 1,
        "slots": 4,
        "finished_per_minute": 60,
        "paused": False,
    }
    return QueueStats(**{**base, **changes})


def condition(fields: dict[str, Any] | None) -> tuple[str, str]:
    assert fields
    (found,) = fields["conditions"]
    return found["status"], found["lastTransitionTime"]


def test_counts_come_in_the_order_of_the_phases() -> None:
    fields = stats_fields(numbers(), {}, stamp(0))
    assert fields
    assert fields["counts"] == [
        {"phase": "Queued", "count": 3},
        {"phase": "Running", "count": 2},
    ]
    assert fields["lastUpdateTime"] == stamp(0)


def test_what_the_status_says_already_is_no_news() -> None:
    fields = stats_fields(numbers(), {}, stamp(0))
    assert fields
    assert stats_fields(numbers(), fields, stamp(5)) is None
    assert stats_fields(numbers(oldest_queued_seconds=8), fields, stamp(5))


def test_a_queue_is_drained_once_it_is_paused_and_nothing_runs() -> None:
    open_fields = stats_fields(numbers(), {}, stamp(0))
    assert condition(open_fields) == ("False", stamp(0))
    assert open_fields
    running = stats_fields(numbers(paused=True), open_fields, stamp(1))
    assert running is None
    idle = {"counts": {Phase.QUEUED: 3}, "paused": True}
    drained = stats_fields(numbers(**idle), open_fields, stamp(2))
    assert condition(drained) == ("True", stamp(2))
    assert drained
    later = stats_fields(numbers(**idle, oldest_queued_seconds=9), drained, stamp(3))
    assert condition(later) == ("True", stamp(2))


def test_throughput_counts_the_last_minute() -> None:
    throughput = Throughput()
    for second in range(120):
        throughput.record_finished(second + 0.5)
        throughput.record_finished(second + 0.6)
    assert throughput.per_minute(120.0) == 118
    assert throughput.per_minute(300.0) == 0


@pytest.mark.parametrize(
    ("spec", "oldest"),
    [({}, 90), ({"maxConcurrency": 1}, 90), ({"maxConcurrency": 1, "paused": True}, 0)],
)
def test_who_waits_for_a_place_is_waiting_though_no_worker_may_claim_it(
    spec: dict[str, Any], oldest: int
) -> None:
    harness = OperatorHarness()
    harness.now = 90.0
    meta = {"namespace": "ns", "name": "default", "resourceVersion": "1"}
    harness.caches.queues.on_update({"metadata": meta, "spec": spec})
    harness.store("job", dict(raw(lastTransitionTime=stamp(0))))
    [(_, fields)] = asyncio.run(harness.queue_stats.changed_statuses())
    assert fields["oldestQueuedSeconds"] == oldest


def test_ages_are_told_of_queues_without_an_asyncqueue_too_and_of_empty_ones_with_one() -> None:
    harness = OperatorHarness()
    harness.now = 90.0
    meta = {"namespace": "ns", "name": "empty", "resourceVersion": "1"}
    harness.caches.queues.on_update({"metadata": meta, "spec": {}})
    harness.store("old", dict(raw("old", lastTransitionTime=stamp(30.9))))
    harness.store("older", dict(raw("older", lastTransitionTime=stamp(20))))
    harness.store("running", dict(raw("running", phase="Succeeded", lastTransitionTime=stamp(0))))
    ages = asyncio.run(harness.queue_stats.oldest_waits())
    assert ages == {("ns", "empty"): 0, ("ns", "default"): 70}


def test_parked_jobs_count_for_each_kind_that_they_wait_for_with_the_age_of_the_oldest() -> None:
    harness = OperatorHarness()
    harness.now = 90.0
    sleep: JsonObject = {"kind": "Sleep", "key": "nap", "until": stamp(999)}
    go: JsonObject = {"kind": "Signal", "key": "go"}
    more: JsonObject = {"kind": "Signal", "key": "more"}
    for name, at, waits in (
        ("new", 80, [sleep]),
        ("both", 60, [go, more, sleep]),
        ("old", 20, [go]),
    ):
        status: dict[str, Any] = {
            "phase": "Pending",
            "parks": 1,
            "lastTransitionTime": stamp(at),
            "waiting": waits,
        }
        harness.store(name, dict(raw(name, **status)))
    harness.store("queued", dict(raw("queued", lastTransitionTime=stamp(0))))

    asyncio.run(harness.queue_stats.oldest_waits())

    of_sleep, of_signal = ("ns", "default", "Sleep"), ("ns", "default", "Signal")
    assert harness.queue_stats.parked == {of_sleep: 2, of_signal: 2}
    assert harness.queue_stats.oldest_parks == {of_sleep: 30, of_signal: 70}


def test_all_that_is_known_of_a_queue_is_in_its_status() -> None:
    fields = stats_fields(numbers(finished_per_minute=61), {}, stamp(0))
    assert fields == {
        "counts": [{"phase": "Queued", "count": 3}, {"phase": "Running", "count": 2}],
        "oldestQueuedSeconds": 7,
        "workers": 1,
        "slots": 4,
        "finishedPerMinute": 61,
        "conditions": [
            {
                "type": "Drained",
                "status": "False",
                "reason": "Open",
                "lastTransitionTime": stamp(0),
            }
        ],
        "lastUpdateTime": stamp(0),
    }
    drained = stats_fields(numbers(counts={}, paused=True), {}, stamp(0))
    assert drained
    assert drained["conditions"][0]["reason"] == "NothingRuns"  # type: ignore[call-overload, index]


def test_the_time_of_another_condition_is_not_that_of_drained() -> None:
    other = {"type": "Admitting", "status": "False", "lastTransitionTime": stamp(0)}
    fields = stats_fields(numbers(), {"conditions": [other]}, stamp(9))
    assert condition(fields) == ("False", stamp(9))


def test_numbers_that_the_schema_does_not_allow_are_brought_into_its_bounds() -> None:
    fields = stats_fields(numbers(slots=2**31, oldest_queued_seconds=-1), {}, stamp(0))
    assert fields
    assert (fields["slots"], fields["oldestQueuedSeconds"]) == (2**31 - 1, 0)


def test_a_job_counts_in_the_throughput_for_a_minute() -> None:
    throughput = Throughput()
    throughput.record_finished(0.0)
    assert throughput.per_minute(59.9) == 1
    assert throughput.per_minute(60.0) == 0


def test_each_second_counts_for_its_own_minute() -> None:
    throughput = Throughput()
    throughput.record_finished(0.0)
    throughput.record_finished(1.0)
    assert throughput.per_minute(60.5) == 1


def test_a_throughput_that_nobody_asks_for_does_not_grow() -> None:
    throughput = Throughput()
    for second in range(1000):
        throughput.record_finished(float(second))
    assert len(throughput._seconds) == 60


def test_of_a_queue_only_its_statistics_are_shown() -> None:
    fields = stats_fields(numbers(), {}, stamp(0))
    assert fields
    status = {**fields, "reservations": [{"name": "a"}]}
    shown = shown_stats({"spec": {"paused": True}, "status": status})
    assert shown == {name: value for name, value in fields.items() if name != "lastUpdateTime"}
