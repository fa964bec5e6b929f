"""What a handler says about the policy of its jobs, checked where it says it."""

from asyncjob.app.inspection import HandlerError
from asyncjob.lifecycle.policy import PolicyLayer, read_policy_layer
from asyncjob.models.retry_policy import RetryPolicy

_LEASE_SECONDS = range(5, 601)
_TIMEOUT_SECONDS = range(1, 31_536_001)


def handler_policy(
    type_: str, *, timeout: int | None, retry: RetryPolicy | None, lease: int | None
) -> PolicyLayer:
    """Return the layer of a handler; raises HandlerError for what no job could have."""
    _check_seconds(type_, "timeout", timeout, _TIMEOUT_SECONDS)
    _check_seconds(type_, "lease", lease, _LEASE_SECONDS)
    source: dict[str, object] = {}
    if timeout is not None:
        source["executionTimeoutSeconds"] = timeout
    if lease is not None:
        source["leaseDurationSeconds"] = lease
    if retry is not None:
        _check_retry(type_, retry)
        source["retryPolicy"] = retry.model_dump(mode="json", by_alias=True, exclude_none=True)
    return read_policy_layer(source)  # type: ignore[arg-type]  # a pydantic dump is plain JSON


def check_concurrency(type_: str, concurrency: int | None) -> None:
    """Raise HandlerError for what would never let a job run."""
    if concurrency is not None and (type(concurrency) is not int or concurrency < 1):
        raise HandlerError(
            f"handler {type_!r}: concurrency is {concurrency!r}, not a whole number of at least 1"
        )


def _check_retry(type_: str, retry: object) -> None:
    if not isinstance(retry, RetryPolicy):
        raise HandlerError(
            f"handler {type_!r}: retry is {retry!r}, not a RetryPolicy: "
            "retry=RetryPolicy(max_retries=3)"
        )


def _check_seconds(type_: str, what: str, seconds: int | None, allowed: range) -> None:
    if seconds is not None and seconds not in allowed:
        raise HandlerError(
            f"handler {type_!r}: {what} is {seconds}, not a whole number of seconds from "
            f"{allowed[0]} to {allowed[-1]}"
        )
