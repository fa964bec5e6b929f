"""The defaults that users are told of, and what is read from an AsyncQueue, whole."""

from typing import Any

from asyncjob_operator.core.options import (
    DecisionOptions,
    QueueLimits,
    QueueView,
    RetentionOptions,
    StartRateLimit,
    read_queue,
)

DAY = 86_400


def test_decisions_have_the_documented_defaults() -> None:
    assert DecisionOptions() == DecisionOptions(
        recovery=True,
        lease_margin=2,
        timeout_margin=10,
        unknown_type_delay=60,
        missing_dependency_timeout=3600,
    )


def test_retention_has_the_documented_defaults() -> None:
    assert RetentionOptions() == RetentionOptions(
        max_age=7 * DAY,
        dead_letter_max_age=30 * DAY,
        max_finished=10_000,
        min_age=600,
        dedup_window=DAY,
        namespace_limit=50_000,
    )


def test_a_queue_is_read_whole() -> None:
    spec: dict[str, Any] = {
        "paused": True,
        "maxConcurrency": 5,
        "maxConcurrencyPerKey": 2,
        "rateLimit": {"count": 3, "periodSeconds": 60},
        "priorityAgeingSeconds": 30,
        "unknownType": "DeadLetter",
        "defaults": {"queueTimeoutSeconds": 100, "cancelGraceSeconds": 7},
        "retention": {"maxAgeSeconds": 11, "maxFinished": 12, "minAgeSeconds": 13},
    }
    assert read_queue({"spec": spec}) == QueueView(
        paused=True,
        queue_timeout_seconds=100,
        cancel_grace_seconds=7,
        max_age_seconds=11,
        max_finished=12,
        min_age_seconds=13,
        dead_letters_unknown_types=True,
        limits=QueueLimits(5, 2, StartRateLimit(3, 60), 30),
    )


def test_a_queue_that_says_nothing_is_open_and_has_no_limits() -> None:
    view = read_queue({})
    assert view == QueueView(paused=False, dead_letters_unknown_types=False)
    assert not view.has_limits
    assert not QueueLimits(priority_ageing_seconds=30)


def test_a_rate_without_a_period_is_one_per_second() -> None:
    limits = read_queue({"spec": {"rateLimit": {"count": 3}}}).limits
    assert limits.rate_limit == StartRateLimit(3, 1)
    assert limits
    assert not limits.counts_running
    assert not read_queue({"spec": {"rateLimit": {"periodSeconds": 3}}}).limits
