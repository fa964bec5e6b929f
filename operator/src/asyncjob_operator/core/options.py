"""What an administrator may set about deciding. Durations are in seconds."""

from dataclasses import dataclass

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
