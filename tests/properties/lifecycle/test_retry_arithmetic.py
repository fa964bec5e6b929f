"""Retry delays for every policy and every retry."""

from hypothesis import example, given
from hypothesis import strategies as st

from asyncjob.lifecycle.policy import (
    MAX_DURATION_SECONDS,
    MAX_REQUESTED_DELAY_SECONDS,
    Backoff,
    EffectivePolicy,
    base_retry_delay,
    is_retryable_category,
    requested_delay,
    retry_delay,
)

seconds = st.floats(0, 31_536_000)
draws = st.floats(0, 1, exclude_max=True)
retries = st.integers(0, 100_000)
categories = st.lists(st.sampled_from(["Network", "Timeout", "Crash", "Internal"])).map(tuple)
policies = st.builds(
    EffectivePolicy,
    backoff=st.sampled_from(Backoff),
    initial_delay_seconds=seconds,
    max_delay_seconds=seconds,
    jitter=st.floats(0, 1),
    retry_on=categories,
    no_retry_on=categories,
)
ROUNDING = 0.0005


def exponential(initial: float, cap: float = 3600.0) -> EffectivePolicy:
    return EffectivePolicy(initial_delay_seconds=initial, max_delay_seconds=cap, jitter=0.0)


@given(policies, retries)
def test_the_delay_before_jitter_never_exceeds_the_cap(policy: EffectivePolicy, n: int) -> None:
    assert 0 <= base_retry_delay(policy, n) <= policy.max_delay_seconds


@given(policies, retries, draws)
@example(EffectivePolicy(initial_delay_seconds=31_536_000, max_delay_seconds=31_536_000), 0, 0.9)
def test_jitter_carries_no_delay_beyond_what_a_status_may_say(
    policy: EffectivePolicy, n: int, jitter_sample: float
) -> None:
    assert 0 <= retry_delay(policy, n, jitter_sample) <= MAX_DURATION_SECONDS


@given(policies)
def test_the_first_delay_is_the_initial_one_or_the_cap(policy: EffectivePolicy) -> None:
    assert base_retry_delay(policy, 0) == min(
        policy.initial_delay_seconds, policy.max_delay_seconds
    )


@given(policies, retries)
def test_delays_never_shrink_from_retry_to_retry(policy: EffectivePolicy, n: int) -> None:
    assert base_retry_delay(policy, n) <= base_retry_delay(policy, n + 1)


@given(policies, retries, draws)
def test_jitter_stays_within_its_share_to_both_sides(
    policy: EffectivePolicy, n: int, jitter_sample: float
) -> None:
    base = base_retry_delay(policy, n)
    low, high = base * (1 - policy.jitter), base * (1 + policy.jitter)
    assert low - ROUNDING <= retry_delay(policy, n, jitter_sample) <= high + ROUNDING


@given(policies, retries)
def test_the_middle_of_the_jitter_is_the_delay_itself(policy: EffectivePolicy, n: int) -> None:
    assert abs(retry_delay(policy, n, 0.5) - base_retry_delay(policy, n)) <= ROUNDING


@given(seconds, draws)
def test_without_jitter_the_first_retry_waits_exactly_the_initial_delay(
    initial: float, jitter_sample: float
) -> None:
    policy = exponential(initial, cap=31_536_000)
    assert retry_delay(policy, 0, jitter_sample) == round(initial, 3)


@given(seconds, retries)
def test_a_fixed_backoff_never_grows(initial: float, n: int) -> None:
    policy = EffectivePolicy(
        backoff=Backoff.FIXED, initial_delay_seconds=initial, max_delay_seconds=1e9, jitter=0.0
    )
    assert base_retry_delay(policy, n) == initial


def test_the_ten_thousandth_retry_does_not_overflow() -> None:
    assert base_retry_delay(exponential(2.0), 10_000) == 3600.0
    assert base_retry_delay(exponential(0.0), 10_000) == 0.0


def test_the_documented_schedules_come_out() -> None:
    def first(policy: EffectivePolicy, count: int) -> list[float]:
        return [base_retry_delay(policy, n) for n in range(count)]

    assert first(exponential(2.0), 4) == [2, 4, 8, 16]
    assert first(exponential(5.0), 4) == [5, 10, 20, 40]
    assert first(exponential(30.0, cap=3600), 8) == [30, 60, 120, 240, 480, 960, 1920, 3600]


@given(st.floats(allow_nan=False))
def test_a_requested_delay_is_within_bounds(after: float) -> None:
    assert 0 <= requested_delay(after) <= MAX_REQUESTED_DELAY_SECONDS


@given(policies, st.sampled_from(["Network", "Timeout", "Crash", "Internal", "Own"]))
def test_what_is_never_to_be_retried_is_not_whatever_else_is_said(
    policy: EffectivePolicy, category: str
) -> None:
    retried = is_retryable_category(policy, category)
    if category in policy.no_retry_on:
        assert not retried
    else:
        assert retried == (not policy.retry_on or category in policy.retry_on)
