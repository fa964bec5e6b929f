"""What is configured: the operator's options, and an AsyncQueue's settings.

A queue's settings are its pause, limits, defaults and retention. A queue without an AsyncQueue
object is open and unlimited. Durations are in seconds.
"""

from dataclasses import dataclass
from typing import Final

from asyncjob.json_types import JsonObject, child, flag, opt_integer, text
from asyncjob.models.queue import UnknownType

DAY = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class DecisionOptions:
    """Options of decisions about jobs."""

    recovery: bool = True
    """Whether jobs are taken from workers that are lost."""

    lease_margin: float = 2.0
    """Added to the duration of a job's lease before it counts as expired."""

    timeout_margin: float = 10.0
    """Added to an execution timeout, so that the worker itself enforces it first."""

    unknown_type_delay: float = 60.0
    """For how long a queue's workers have to lack a type before that counts."""

    missing_dependency_timeout: float = 3600.0
    """For how long a job waits for a dependency that does not exist; 0 means without end."""


@dataclass(frozen=True, slots=True)
class RetentionOptions:
    """Which finished jobs are kept, unless their AsyncQueue says otherwise."""

    max_age: float = 7 * DAY
    dead_letter_max_age: float = 30 * DAY
    max_finished: int = 10_000
    """Finished jobs kept per queue; dead letters are counted apart."""

    min_age: float = 600.0
    """Removal by age or by a queue's count spares younger jobs."""

    dedup_window: float = DAY
    """The same for a job with an idempotency key or a deduplication id."""

    namespace_limit: int = 50_000
    """Finished jobs kept per namespace, whatever their age."""


MAX_RESERVATIONS: Final = 1000
"""Reservations that the schema of a queue's status allows, and the limit of `maxConcurrency`."""


@dataclass(frozen=True, slots=True)
class StartRateLimit:
    """At most `count` starts in any `period_seconds` seconds."""

    count: int
    period_seconds: int


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The limits of a queue; None means that there is none."""

    max_concurrency: int | None = None
    max_concurrency_per_key: int | None = None
    rate_limit: StartRateLimit | None = None
    priority_ageing_seconds: int | None = None
    """Seconds of waiting that raise a job's priority by one."""

    @property
    def counts_running(self) -> bool:
        """Return whether a reservation is held until its job has left Running."""
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
    """An AsyncQueue's settings; None means that the queue does not set the value."""

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
        """Return whether jobs need a reservation, and to be admitted, before they are claimed."""
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
