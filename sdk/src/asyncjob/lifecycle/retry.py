"""Arithmetic of retries: how long to wait, and whether to try again at all."""

from asyncjob.lifecycle.policy import MAX_DURATION_SECONDS, Backoff, EffectivePolicy

MAX_REQUESTED_DELAY_SECONDS = 7 * 24 * 3600.0
"""The longest wait a handler may ask for with `Retry(after=…)`."""

_MAX_DOUBLINGS = 64


def base_retry_delay(policy: EffectivePolicy, retry: int) -> float:
    """Return the delay in seconds before jitter; `retry` counts from 0 for the first."""
    if policy.backoff is Backoff.FIXED:
        return min(policy.initial_delay_seconds, policy.max_delay_seconds)
    doublings = min(retry, _MAX_DOUBLINGS)
    return min(policy.initial_delay_seconds * float(1 << doublings), policy.max_delay_seconds)


def retry_delay(policy: EffectivePolicy, retry: int, draw: float) -> float:
    """Return the delay in seconds; `draw` is uniform in [0, 1) and decides the jitter.

    Jitter does not carry it beyond what a job's status may say.
    """
    factor = 1.0 - policy.jitter + 2.0 * policy.jitter * draw
    return round(min(base_retry_delay(policy, retry) * factor, MAX_DURATION_SECONDS), 3)


def requested_delay(after: float) -> float:
    """Return the delay a handler asked for, in seconds, within bounds and without jitter."""
    return round(min(max(after, 0.0), MAX_REQUESTED_DELAY_SECONDS), 3)


def is_retryable_category(policy: EffectivePolicy, category: str) -> bool:
    """Return whether errors of the category are tried again; `noRetryOn` wins over `retryOn`."""
    if category in policy.no_retry_on:
        return False
    return not policy.retry_on or category in policy.retry_on
