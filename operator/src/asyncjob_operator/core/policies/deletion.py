"""A job that is being deleted and stays for a finalizer's sake: it is cancelled.

Whatever it holds, a worker's time, a place in its queue, a schedule's turn, it would hold for as
long as somebody else's finalizer stays. No rule lets a job be cancelled without the wish, so the
operator wishes it; what follows is what follows from any wish to cancel.
"""

from typing import Final

from asyncjob_operator.core.decision import CancelDeleted, PolicyResult
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

DELETION: Final = "deletion"


def cancel_deleted(snapshot: Snapshot, _now: Now) -> PolicyResult:
    """Set `cancel` on an unfinished job that is being deleted."""
    return None if snapshot.job.control.cancel else CancelDeleted(DELETION)
