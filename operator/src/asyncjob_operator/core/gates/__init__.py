"""What holds a job back before a claim: one gate per module, tried in order.

A gate says why it is closed, or None. Later gates (limits of queues, pauses) take their place in
`GATES`, and all policies that queue, hold or admit a job then heed them.
"""

from collections.abc import Callable
from typing import Final

from asyncjob_operator.core.gates.closed import Closed
from asyncjob_operator.core.gates.dependencies import dependencies
from asyncjob_operator.core.gates.start_time import start_time
from asyncjob_operator.core.gates.suspension import suspension
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

__all__ = ["GATES", "Closed", "first_closed"]

GATES: Final[tuple[Callable[[Snapshot, Moment], Closed | None], ...]] = (
    start_time,
    suspension,
    dependencies,
)


def first_closed(snapshot: Snapshot, now: Moment) -> Closed | None:
    """Return the first gate that is closed, or None if the job may be claimed."""
    for gate in GATES:
        closed = gate(snapshot, now)
        if closed:
            return closed
    return None
