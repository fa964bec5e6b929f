"""The retry policy of a job or of a queue's defaults."""

from typing import Annotated

from pydantic import Field

from asyncjob.lifecycle.policy import Backoff
from asyncjob.models.base import CategoryName, DelaySeconds, Model

CategoryList = Annotated[list[CategoryName], Field(max_length=20)]


class RetryPolicy(Model):
    """How often and how fast a failed attempt is tried again. What is absent is inherited."""

    max_retries: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """Retries after the first attempt; 0 means none. Built in: 3."""

    backoff: Backoff | None = None
    """Fixed: always the initial delay. Exponential: doubled each time. Built in: Exponential."""

    initial_delay_seconds: DelaySeconds | None = None
    """Delay before the first retry, in seconds; 0 is allowed. Built in: 2."""

    max_delay_seconds: DelaySeconds | None = None
    """The delay never grows beyond this, jitter apart, in seconds. Built in: 3600."""

    jitter: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share by which the delay is spread to both sides, 0 to 1. Built in: 0.2."""

    retry_on: CategoryList | None = None
    """Retry only errors of these categories; empty means all."""

    no_retry_on: CategoryList | None = None
    """Never retry errors of these categories; wins over retryOn."""

    max_crashes: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Deaths of the worker or of the handler's process that are survived; they spend no retry.
    Built in: 3."""
