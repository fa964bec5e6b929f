"""The effective policy: job over queue over handler over built-in."""

from asyncjob.lifecycle.policy import (
    BUILT_IN_POLICY,
    Backoff,
    EffectivePolicy,
    PolicyLayer,
    read_effective_policy,
    read_policy_layer,
    resolve_policy,
)


def test_without_a_word_from_anyone_the_built_in_policy_holds() -> None:
    assert resolve_policy() == BUILT_IN_POLICY == EffectivePolicy()
    assert (BUILT_IN_POLICY.max_retries, BUILT_IN_POLICY.backoff) == (3, Backoff.EXPONENTIAL)
    assert (BUILT_IN_POLICY.initial_delay_seconds, BUILT_IN_POLICY.max_delay_seconds) == (
        2.0,
        3600.0,
    )
    assert (BUILT_IN_POLICY.jitter, BUILT_IN_POLICY.max_crashes) == (0.2, 3)
    assert (BUILT_IN_POLICY.execution_timeout_seconds, BUILT_IN_POLICY.lease_duration_seconds) == (
        1800,
        60,
    )


def test_for_each_value_the_first_layer_that_says_something_counts() -> None:
    job = PolicyLayer(max_retries=0)
    queue = PolicyLayer(max_retries=5, jitter=0.0)
    handler = PolicyLayer(jitter=1.0, max_crashes=9)
    found = resolve_policy(job, queue, handler)
    assert (found.max_retries, found.jitter, found.max_crashes) == (0, 0.0, 9)


def test_an_empty_list_says_something_and_an_absent_one_does_not() -> None:
    inherited = PolicyLayer(retry_on=("Network",))
    assert (
        resolve_policy(read_policy_layer({"retryPolicy": {"retryOn": []}}), inherited).retry_on
        == ()
    )
    assert resolve_policy(read_policy_layer({"retryPolicy": {}}), inherited).retry_on == (
        "Network",
    )


def test_what_a_spec_leaves_out_is_left_open() -> None:
    assert read_policy_layer({"type": "test"}) == PolicyLayer()


def test_whole_numbers_and_fractions_are_delays_alike() -> None:
    assert (
        read_policy_layer({"retryPolicy": {"initialDelaySeconds": 2}}).initial_delay_seconds == 2.0
    )
    assert (
        read_policy_layer({"retryPolicy": {"initialDelaySeconds": 0.5}}).initial_delay_seconds
        == 0.5
    )


def test_a_status_without_a_policy_reads_as_the_built_in_one() -> None:
    assert read_effective_policy({}) == BUILT_IN_POLICY
