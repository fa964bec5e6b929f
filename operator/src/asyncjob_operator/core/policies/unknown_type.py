"""`unknownType: DeadLetter`: a claimable job of a type that no live worker of its queue lists.

It holds for a job that has run before as well: no queue timeout would ever end its waiting.
"""

from typing import Final

from asyncjob.lifecycle.gate import dead_letter
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import ChangePhase, PolicyResult, TypeUnserved, Wait
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.roll_call import UnservedType
from asyncjob_operator.core.snapshot import Snapshot

UNKNOWN_TYPE: Final = "unknown-type"
MAX_TYPES_NAMED: Final = 5
"""So many of the types that are listed are named."""


def reject_unknown_type(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Give up a job whose type has been missing for as long as the job could be claimed."""
    job, missing, claimable = (
        snapshot.job,
        snapshot.unserved_type,
        snapshot.observation.claimable_since,
    )
    if missing is None or claimable is None or not snapshot.queue.dead_letters_unknown_types:
        return None
    due_at = max(missing.since, claimable) + snapshot.options.unknown_type_delay
    if now.monotonic < due_at:
        return Wait(due_at)
    message = f"no live worker of queue {job.queue} lists type {job.type}; {_listed_types(missing)}"
    move = dead_letter(job, Reason.UNKNOWN_TYPE, message, now=now.timestamp)
    return ChangePhase(UNKNOWN_TYPE, move, TypeUnserved(job.namespace, job.queue, job.type))


def _listed_types(unserved: UnservedType) -> str:
    who = f"{unserved.live_workers} live worker{'s' if unserved.live_workers > 1 else ''}"
    verb = "list" if unserved.live_workers > 1 else "lists"
    more = len(unserved.listed_types) - MAX_TYPES_NAMED
    shown = ", ".join(unserved.listed_types[:MAX_TYPES_NAMED]) or "nothing"
    return f"{who} {verb} {shown}" + (f" and {more} more" if more > 0 else "")
