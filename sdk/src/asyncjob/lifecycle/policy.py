"""The effective policy of an attempt, what it retries, and the delays it leads to.

The job's comes before the queue's, then the handler's, then the built-in one.

A claim freezes the policy into the job's status, so that the operator and the API server's rules
need not know handlers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache

from asyncjob.json_types import (
    Json,
    JsonObject,
    child,
    integer,
    number,
    opt_integer,
    opt_number,
    opt_text,
    text,
    texts,
)


class Category(StrEnum):
    """The built-in categories of errors; an app may add its own by `app.categorize(...)`."""

    TIMEOUT = "Timeout"
    NETWORK = "Network"
    RATE_LIMITED = "RateLimited"
    VALIDATION = "Validation"
    PERMISSION = "Permission"
    NOT_FOUND = "NotFound"
    DEPENDENCY = "Dependency"
    CRASH = "Crash"
    INTERNAL = "Internal"


class Backoff(StrEnum):
    """How the delay grows from retry to retry."""

    FIXED = "Fixed"
    EXPONENTIAL = "Exponential"


@dataclass(frozen=True, slots=True)
class PolicyLayer:
    """What one source says about the policy; None means that it says nothing.

    Delays, timeouts and the lease are in seconds; `jitter` is a share from 0 to 1.
    """

    max_retries: int | None = None
    backoff: Backoff | None = None
    initial_delay_seconds: float | None = None
    max_delay_seconds: float | None = None
    jitter: float | None = None
    retry_on: tuple[str, ...] | None = None
    no_retry_on: tuple[str, ...] | None = None
    max_crashes: int | None = None
    execution_timeout_seconds: int | None = None
    lease_duration_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """The policy in force for an attempt. The defaults are the built-in layer."""

    max_retries: int = 3
    backoff: Backoff = Backoff.EXPONENTIAL
    initial_delay_seconds: float = 2.0
    max_delay_seconds: float = 3600.0
    jitter: float = 0.2
    retry_on: tuple[str, ...] = ()
    no_retry_on: tuple[str, ...] = ()
    max_crashes: int = 3
    execution_timeout_seconds: int = 1800
    lease_duration_seconds: int = 60

    def to_json(self) -> dict[str, Json]:
        """Return the form of `status.effective`; every key is there, so that a merge is exact."""
        return {
            "maxRetries": self.max_retries,
            "backoff": self.backoff.value,
            "initialDelaySeconds": self.initial_delay_seconds,
            "maxDelaySeconds": self.max_delay_seconds,
            "jitter": self.jitter,
            "retryOn": list(self.retry_on),
            "noRetryOn": list(self.no_retry_on),
            "maxCrashes": self.max_crashes,
            "executionTimeoutSeconds": self.execution_timeout_seconds,
            "leaseDurationSeconds": self.lease_duration_seconds,
        }


BUILT_IN_POLICY = EffectivePolicy()
MAX_DURATION_SECONDS = 31_536_000
"""A year: no delay or duration in a job's status is longer; the schema refuses more."""

MAX_DEADLINE_SECONDS = 315_360_000
"""Ten years: longest time from a job's creation to its deadline. A sleep may last for one."""

MAX_PRIORITY = 1000
"""A priority is between its negative and this."""

DEFAULT_QUEUE_TIMEOUT_SECONDS = 7200
DEFAULT_CANCEL_GRACE_SECONDS = 30


@lru_cache(maxsize=256)  # most jobs of a worker have the same layers, and each claim asks twice
def resolve_policy(*layers: PolicyLayer) -> EffectivePolicy:
    """Return the policy in force: for each value, the first layer that says something."""
    chosen = {}
    for item in fields(PolicyLayer):
        values = (getattr(layer, item.name) for layer in layers)
        value = next((value for value in values if value is not None), None)
        if value is not None:
            chosen[item.name] = value
    return EffectivePolicy(**chosen)


def read_policy_layer(source: JsonObject) -> PolicyLayer:
    """Read the layer of a job's `spec` or of a queue's `spec.defaults`; both have one shape."""
    retry = child(source, "retryPolicy")
    backoff = opt_text(retry, "backoff")
    return PolicyLayer(
        max_retries=opt_integer(retry, "maxRetries"),
        backoff=Backoff(backoff) if backoff else None,
        initial_delay_seconds=opt_number(retry, "initialDelaySeconds"),
        max_delay_seconds=opt_number(retry, "maxDelaySeconds"),
        jitter=opt_number(retry, "jitter"),
        retry_on=_optional_texts(retry, "retryOn"),
        no_retry_on=_optional_texts(retry, "noRetryOn"),
        max_crashes=opt_integer(retry, "maxCrashes"),
        execution_timeout_seconds=opt_integer(source, "executionTimeoutSeconds"),
        lease_duration_seconds=opt_integer(source, "leaseDurationSeconds"),
    )


def _optional_texts(source: JsonObject, key: str) -> tuple[str, ...] | None:
    return texts(source, key) if key in source else None


def read_effective_policy(status: JsonObject) -> EffectivePolicy:
    """Read `status.effective`; what is missing there is built in."""
    effective = status.get("effective")
    if not isinstance(effective, Mapping):
        return BUILT_IN_POLICY
    return EffectivePolicy(
        max_retries=integer(effective, "maxRetries", BUILT_IN_POLICY.max_retries),
        backoff=Backoff(text(effective, "backoff", BUILT_IN_POLICY.backoff)),
        initial_delay_seconds=number(
            effective, "initialDelaySeconds", BUILT_IN_POLICY.initial_delay_seconds
        ),
        max_delay_seconds=number(effective, "maxDelaySeconds", BUILT_IN_POLICY.max_delay_seconds),
        jitter=number(effective, "jitter", BUILT_IN_POLICY.jitter),
        retry_on=texts(effective, "retryOn"),
        no_retry_on=texts(effective, "noRetryOn"),
        max_crashes=integer(effective, "maxCrashes", BUILT_IN_POLICY.max_crashes),
        execution_timeout_seconds=integer(
            effective, "executionTimeoutSeconds", BUILT_IN_POLICY.execution_timeout_seconds
        ),
        lease_duration_seconds=integer(
            effective, "leaseDurationSeconds", BUILT_IN_POLICY.lease_duration_seconds
        ),
    )


MAX_REQUESTED_DELAY_SECONDS = 7 * 24 * 3600.0
"""The longest wait a handler may ask for with `Retry(after=…)`."""

_MAX_DOUBLINGS = 64


def base_retry_delay(policy: EffectivePolicy, retry: int) -> float:
    """Return the delay in seconds before jitter; `retry` counts from 0 for the first."""
    if policy.backoff is Backoff.FIXED:
        return min(policy.initial_delay_seconds, policy.max_delay_seconds)
    doublings = min(retry, _MAX_DOUBLINGS)
    return min(policy.initial_delay_seconds * float(1 << doublings), policy.max_delay_seconds)


def retry_delay(policy: EffectivePolicy, retry: int, jitter_sample: float) -> float:
    """Return the delay in seconds; `jitter_sample` is uniform in [0, 1) and decides the jitter.

    Jitter does not carry it beyond what a job's status may say.
    """
    factor = 1.0 - policy.jitter + 2.0 * policy.jitter * jitter_sample
    return round(min(base_retry_delay(policy, retry) * factor, MAX_DURATION_SECONDS), 3)


def requested_delay(after: float) -> float:
    """Return the delay a handler asked for, in seconds, within bounds and without jitter."""
    return round(min(max(after, 0.0), MAX_REQUESTED_DELAY_SECONDS), 3)


def is_retryable_category(policy: EffectivePolicy, category: str) -> bool:
    """Return whether errors of the category are tried again; `noRetryOn` wins over `retryOn`."""
    if category in policy.no_retry_on:
        return False
    return not policy.retry_on or category in policy.retry_on
