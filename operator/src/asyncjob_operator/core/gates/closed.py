"""Why a gate is closed."""

from dataclasses import dataclass

from asyncjob.lifecycle.phases import Reason


@dataclass(frozen=True, slots=True)
class ClosedGate:
    """`until` is when on the monotonic clock to look again; None: when something changes."""

    reason: Reason
    message: str
    until: float | None = None
