"""What an AsyncQueue limits."""

from dataclasses import dataclass
from typing import Final

from asyncjob.json_types import JsonObject, child, opt_integer

MAX_PLACES: Final = 1000
"""So many places fit into the status of a queue; `maxConcurrency` goes no higher."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `count` starts in any `period` seconds."""

    count: int
    period: int


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a queue; None means that there is none.

    Every `ageing` seconds of waiting count like one more in priority.
    """

    concurrency: int | None = None
    per_key: int | None = None
    rate: Rate | None = None
    ageing: int | None = None

    @property
    def counts_running(self) -> bool:
        """Return whether a place is held until its job has left Running."""
        return self.concurrency is not None or self.per_key is not None

    def __bool__(self) -> bool:
        return self.counts_running or self.rate is not None


UNLIMITED: Final = Limits()


def read_limits(spec: JsonObject) -> Limits:
    """Read the limits of an AsyncQueue's spec."""
    rate = child(spec, "rateLimit")
    count = opt_integer(rate, "count")
    return Limits(
        concurrency=opt_integer(spec, "maxConcurrency"),
        per_key=opt_integer(spec, "maxConcurrencyPerKey"),
        rate=Rate(count, opt_integer(rate, "periodSeconds") or 1) if count else None,
        ageing=opt_integer(spec, "priorityAgeingSeconds"),
    )
