"""What an AsyncQueue limits."""

from dataclasses import dataclass
from typing import Final

from asyncjob.json_types import JsonObject, child, opt_integer

MAX_RESERVATIONS: Final = 1000
"""So many places fit into the status of a queue; `maxConcurrency` goes no higher."""


@dataclass(frozen=True, slots=True)
class StartRateLimit:
    """At most `count` starts in any `period_seconds` seconds."""

    count: int
    period_seconds: int


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The limits of a queue; None means that there is none.

    Every `priority_ageing_seconds` seconds of waiting count like one more in priority.
    """

    max_concurrency: int | None = None
    max_concurrency_per_key: int | None = None
    rate_limit: StartRateLimit | None = None
    priority_ageing_seconds: int | None = None

    @property
    def counts_running(self) -> bool:
        """Return whether a place is held until its job has left Running."""
        return self.max_concurrency is not None or self.max_concurrency_per_key is not None

    def __bool__(self) -> bool:
        return self.counts_running or self.rate_limit is not None


UNLIMITED: Final = QueueLimits()


def read_limits(spec: JsonObject) -> QueueLimits:
    """Read the limits of an AsyncQueue's spec."""
    rate = child(spec, "rateLimit")
    count = opt_integer(rate, "count")
    return QueueLimits(
        max_concurrency=opt_integer(spec, "maxConcurrency"),
        max_concurrency_per_key=opt_integer(spec, "maxConcurrencyPerKey"),
        rate_limit=StartRateLimit(count, opt_integer(rate, "periodSeconds") or 1)
        if count
        else None,
        priority_ageing_seconds=opt_integer(spec, "priorityAgeingSeconds"),
    )
