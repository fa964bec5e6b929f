"""What holds a job back before a claim: one gate per module, tried in order.

A gate says why it is closed, or None. Later gates (limits of queues, pauses) take their place in
`GATES`, and all policies that queue, hold or admit a job then heed them.
"""

from collections.abc import Callable
from typing import Final

from asyncjob_operator.core.gates.closed import ClosedGate
from asyncjob_operator.core.gates.dependencies import dependency_gate
from asyncjob_operator.core.gates.start_time import not_before_gate
from asyncjob_operator.core.gates.suspension import suspend_gate
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

__all__ = ["GATES", "ClosedGate", "first_closed_gate"]

GATES: Final[tuple[Callable[[Snapshot, Now], ClosedGate | None], ...]] = (
    not_before_gate,
    suspend_gate,
    dependency_gate,
)


def first_closed_gate(snapshot: Snapshot, now: Now) -> ClosedGate | None:
    """Return the first gate that is closed, or None if the job may be claimed."""
    for gate in GATES:
        closed = gate(snapshot, now)
        if closed:
            return closed
    return None
