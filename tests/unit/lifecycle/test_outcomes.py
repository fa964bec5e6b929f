"""How an attempt ends: which phase, which reason, what it costs."""

from dataclasses import replace

import pytest

from asyncjob.lifecycle.phase_change import (
    Failure,
    cancel_running_job,
    crash,
    fail,
    release,
    succeed,
)
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import MAX_REQUESTED_DELAY_SECONDS, Backoff, EffectivePolicy
from support.objects.builders import at, running

NO_LUCK = Failure(type="ValueError", category="Internal", message="no luck")
FIXED = EffectivePolicy(backoff=Backoff.FIXED, initial_delay_seconds=5.0, jitter=0.0)


def test_success_keeps_the_result_and_shows_a_hundred_percent() -> None:
    done = succeed(running(), now=at(3), result={"sum": 3})
    assert (done.target, done.reason) == (Phase.SUCCEEDED, None)
    assert done.fields["result"] == {"sum": 3}
    assert done.fields["progress"] == {"percent": 100}
    assert done.fields["completionTime"] == at(3)
    assert done.fields["error"] is None


def test_success_drops_the_lease_and_the_admission() -> None:
    done = succeed(running(), now=at(3))
    assert (done.fields["lease"], done.fields["admitted"]) == (None, None)


def test_a_failure_is_retried_and_costs_a_retry() -> None:
    failed = fail(running(), NO_LUCK, now=at(), jitter_sample=0.5)
    assert (failed.target, failed.reason) == (Phase.RETRYING, Reason.HANDLER_FAILED)
    assert failed.fields["retries"] == 1
    assert failed.fields["retryDelaySeconds"] == 2.0
    assert failed.fields["nextAttemptTime"] == at(2)
    assert failed.fields["error"] == NO_LUCK.to_json()


def test_a_failure_beyond_the_last_retry_is_a_dead_letter_that_keeps_the_error() -> None:
    dead = fail(running(retries=3), NO_LUCK, now=at(), jitter_sample=0.5)
    assert (dead.target, dead.reason) == (Phase.DEAD_LETTER, Reason.RETRIES_EXHAUSTED)
    assert "3 of 3 retries" in str(dead.fields["message"])
    assert dead.fields["error"] == NO_LUCK.to_json()
    assert "retries" not in dead.fields


def test_no_retries_means_none() -> None:
    job = running(policy=EffectivePolicy(max_retries=0))
    assert fail(job, NO_LUCK, now=at(), jitter_sample=0.5).target is Phase.DEAD_LETTER


def test_a_category_never_to_be_retried_wins_over_one_to_be_retried() -> None:
    policy = EffectivePolicy(retry_on=("Internal",), no_retry_on=("Internal",))
    dead = fail(running(policy=policy), NO_LUCK, now=at(), jitter_sample=0.5)
    assert (dead.target, dead.reason) == (Phase.DEAD_LETTER, Reason.NOT_RETRYABLE)


def test_only_the_categories_to_be_retried_are() -> None:
    policy = EffectivePolicy(retry_on=("Network",))
    assert (
        fail(running(policy=policy), NO_LUCK, now=at(), jitter_sample=0.5).target
        is Phase.DEAD_LETTER
    )
    network = replace(NO_LUCK, category="Network")
    assert (
        fail(running(policy=policy), network, now=at(), jitter_sample=0.5).target is Phase.RETRYING
    )


def test_a_requested_delay_is_taken_as_it_is_and_makes_the_failure_retryable() -> None:
    policy = EffectivePolicy(no_retry_on=("Internal",))
    later = fail(
        running(policy=policy), replace(NO_LUCK, retry_after=7.5), now=at(), jitter_sample=0.0
    )
    assert later.target is Phase.RETRYING
    assert later.fields["retryDelaySeconds"] == 7.5


@pytest.mark.parametrize(
    ("asked", "given"),
    [(-5.0, 0.0), (1e12, MAX_REQUESTED_DELAY_SECONDS), (1.23456, 1.235)],
)
def test_a_requested_delay_is_within_bounds_and_in_milliseconds(asked: float, given: float) -> None:
    later = fail(running(), replace(NO_LUCK, retry_after=asked), now=at(), jitter_sample=0.0)
    assert later.fields["retryDelaySeconds"] == given


def test_a_requested_delay_does_not_add_retries() -> None:
    dead = fail(running(retries=3), replace(NO_LUCK, retry_after=1.0), now=at(), jitter_sample=0.5)
    assert dead.reason is Reason.RETRIES_EXHAUSTED


def test_a_permanent_failure_says_why() -> None:
    invalid = replace(NO_LUCK, permanent=True, reason=Reason.INVALID_PAYLOAD)
    dead = fail(running(), invalid, now=at(), jitter_sample=0.5)
    assert (dead.target, dead.reason) == (Phase.DEAD_LETTER, Reason.INVALID_PAYLOAD)


def test_a_crash_costs_a_crash_and_never_a_retry() -> None:
    crashed = crash(running(), Reason.LEASE_EXPIRED, "silent", now=at(), jitter_sample=0.5)
    assert (crashed.target, crashed.reason) == (Phase.QUEUED, Reason.LEASE_EXPIRED)
    assert crashed.fields["crashes"] == 1
    assert crashed.fields["error"] == {
        "type": "LeaseExpired",
        "category": "Crash",
        "message": "silent",
    }
    assert "retries" not in crashed.fields
    assert "retryDelaySeconds" not in crashed.fields


@pytest.mark.parametrize("reason", [Reason.LEASE_EXPIRED, Reason.WORKER_CRASHED])
@pytest.mark.parametrize(("before", "delay"), [(1, 4.0), (2, 8.0)])
def test_only_the_first_crash_of_a_lost_worker_has_no_backoff(
    reason: Reason, before: int, delay: float
) -> None:
    crashed = crash(running(crashes=before), reason, "again", now=at(), jitter_sample=0.5)
    assert (crashed.target, crashed.reason) == (Phase.RETRYING, reason)
    assert crashed.fields["crashes"] == before + 1
    assert crashed.fields["retryDelaySeconds"] == delay


def test_the_first_crash_of_a_handlers_own_process_has_a_backoff() -> None:
    crashed = crash(running(), Reason.HANDLER_CRASHED, "died", now=at(), jitter_sample=0.5)
    assert crashed.target is Phase.RETRYING
    assert (crashed.fields["crashes"], crashed.fields["retryDelaySeconds"]) == (1, 2.0)


def test_a_crash_is_survived_even_where_no_retry_is_allowed() -> None:
    job = running(policy=EffectivePolicy(max_retries=0))
    assert crash(job, Reason.LEASE_EXPIRED, "", now=at(), jitter_sample=0.5).target is Phase.QUEUED


def test_a_crash_too_many_is_a_dead_letter_and_is_counted() -> None:
    dead = crash(running(crashes=3), Reason.WORKER_CRASHED, "oom", now=at(), jitter_sample=0.5)
    assert (dead.target, dead.reason) == (Phase.DEAD_LETTER, Reason.CRASH_BUDGET_EXHAUSTED)
    assert dead.fields["crashes"] == 4
    assert dead.fields["message"] == "crashed 4 times, 3 are allowed: oom"


@pytest.mark.parametrize(
    ("crashes", "allowed", "words"),
    [
        (0, 0, "crashed once, 0 are allowed: oom"),
        (1, 1, "crashed 2 times, 1 is allowed: oom"),
        (1, 0, "crashed 2 times, 0 are allowed: oom"),
    ],
)
def test_a_crash_too_many_says_how_many_there_were(crashes: int, allowed: int, words: str) -> None:
    job = running(crashes=crashes, policy=EffectivePolicy(max_crashes=allowed))
    dead = crash(job, Reason.HANDLER_CRASHED, "oom", now=at(), jitter_sample=0.5)
    assert (dead.target, dead.reason) == (Phase.DEAD_LETTER, Reason.CRASH_BUDGET_EXHAUSTED)
    assert (dead.fields["message"], dead.fields["crashes"]) == (words, crashes + 1)


@pytest.mark.parametrize("before", [0, 1, 2])
def test_the_first_three_releases_queue_the_job_at_once(before: int) -> None:
    freed = release(running(releases=before), Reason.RELEASED, "", now=at(), jitter_sample=0.5)
    assert (freed.target, freed.reason) == (Phase.QUEUED, Reason.RELEASED)
    assert freed.fields["releases"] == before + 1
    assert "retries" not in freed.fields
    assert "crashes" not in freed.fields


@pytest.mark.parametrize(("before", "delay"), [(3, 2.0), (4, 4.0), (5, 8.0), (99, 3600.0)])
def test_later_releases_wait_for_a_backoff(before: int, delay: float) -> None:
    freed = release(running(releases=before), Reason.WORKER_GONE, "", now=at(), jitter_sample=0.5)
    assert (freed.target, freed.reason) == (Phase.RETRYING, Reason.WORKER_GONE)
    assert freed.fields["retryDelaySeconds"] == delay
    assert freed.fields["releases"] == before + 1
    assert "crashes" not in freed.fields


def test_beyond_a_hundred_releases_each_counts_as_a_crash() -> None:
    freed = release(running(releases=100), Reason.RELEASED, "", now=at(), jitter_sample=0.5)
    assert freed.target is Phase.RETRYING
    assert (freed.fields["releases"], freed.fields["crashes"]) == (101, 1)


def test_beyond_a_hundred_releases_a_spent_crash_budget_is_a_dead_letter() -> None:
    dead = release(
        running(releases=100, crashes=3), Reason.RELEASED, "", now=at(), jitter_sample=0.5
    )
    assert dead.reason is Reason.CRASH_BUDGET_EXHAUSTED
    assert (dead.fields["releases"], dead.fields["crashes"]) == (101, 4)


def test_a_cancellation_says_so() -> None:
    gone = cancel_running_job(running(), "on request", now=at())
    assert (gone.target, gone.reason) == (Phase.CANCELLED, Reason.CANCEL_REQUESTED)


def test_a_fixed_backoff_is_always_the_same() -> None:
    for retries in (0, 1, 2):
        failed = fail(running(policy=FIXED, retries=retries), NO_LUCK, now=at(), jitter_sample=0.9)
        assert failed.fields["retryDelaySeconds"] == 5.0


def test_long_errors_are_cut_with_a_mark() -> None:
    error = Failure(type="T" * 999, category="Internal", message="m" * 9999).to_json()
    assert (len(str(error["type"])), len(str(error["message"]))) == (256, 4096)
    assert str(error["message"]).endswith("…")
