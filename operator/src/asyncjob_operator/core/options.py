"""What people configure about deciding: the operator's options, and an AsyncQueue's settings.

Of a queue these are its pause, limits, defaults and retention. A queue without an AsyncQueue
object is open and unlimited. Durations are in seconds.
"""

from dataclasses import dataclass
from typing import Final

from asyncjob.json_types import JsonObject, child, flag, opt_integer, text
from asyncjob.models.queue import UnknownType

DAY = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class DecisionOptions:
    """How patient the operator is, and whether it recovers at all.

    `lease_margin` is added to a lease's duration and `timeout_margin` to an execution timeout:
    the worker itself is to act first. A type has to be missing among a queue's workers for
    `unknown_type_delay` before that counts. A job waits for one that does not exist for
    `missing_dependency_timeout`; 0 is for ever.
    """

    recovery: bool = True
    lease_margin: float = 2.0
    timeout_margin: float = 10.0
    unknown_type_delay: float = 60.0
    missing_dependency_timeout: float = 3600.0


@dataclass(frozen=True, slots=True)
class RetentionOptions:
    """What is kept of finished jobs where their AsyncQueue says nothing."""

    max_age: float = 7 * DAY
    dead_letter_max_age: float = 30 * DAY
    max_finished: int = 10_000
    min_age: float = 600.0
    dedup_window: float = DAY
    namespace_limit: int = 50_000


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


@dataclass(frozen=True, slots=True)
class QueueView:
    """Pause, limits, defaults and retention of a queue; None means that the queue says nothing."""

    paused: bool = False
    queue_timeout_seconds: int | None = None
    cancel_grace_seconds: int | None = None
    max_age_seconds: int | None = None
    max_finished: int | None = None
    min_age_seconds: int | None = None
    dead_letters_unknown_types: bool = False
    limits: QueueLimits = UNLIMITED

    @property
    def has_limits(self) -> bool:
        """Return whether jobs need a place, and to be admitted, before they are claimed."""
        return bool(self.limits)


OPEN_QUEUE = QueueView()


def read_queue(obj: JsonObject) -> QueueView:
    """Read an AsyncQueue."""
    spec = child(obj, "spec")
    defaults, retention = child(spec, "defaults"), child(spec, "retention")
    return QueueView(
        paused=flag(spec, "paused"),
        queue_timeout_seconds=opt_integer(defaults, "queueTimeoutSeconds"),
        cancel_grace_seconds=opt_integer(defaults, "cancelGraceSeconds"),
        max_age_seconds=opt_integer(retention, "maxAgeSeconds"),
        max_finished=opt_integer(retention, "maxFinished"),
        min_age_seconds=opt_integer(retention, "minAgeSeconds"),
        dead_letters_unknown_types=text(spec, "unknownType") == UnknownType.DEAD_LETTER,
        limits=read_limits(spec),
    )
