"""`unknownType: DeadLetter`: a claimable job of a type that no live worker of its queue lists.

It holds for a job that has run before as well: no queue timeout would ever end its waiting.
"""

from typing import Final

from asyncjob.lifecycle.gate import give_up
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import Transition, TypeMissing, Verdict, Wait
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.roll_call import Missing
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "unknown-type"
SHOWN: Final = 5
"""So many of the types that are listed are named."""


def unknown_type(snapshot: Snapshot, now: Moment) -> Verdict:
    """Give up a job whose type has been missing for as long as the job could be claimed."""
    job, missing, claimable = snapshot.job, snapshot.missing, snapshot.seen.claimable_since
    if missing is None or claimable is None or not snapshot.queue.unknown_is_dead_letter:
        return None
    due_at = max(missing.since, claimable) + snapshot.options.unknown_type_delay
    if now.monotonic < due_at:
        return Wait(due_at)
    message = f"no live worker of queue {job.queue} lists type {job.type}; {_listed(missing)}"
    move = give_up(job, Reason.UNKNOWN_TYPE, message, now=now.text)
    return Transition(NAME, move, TypeMissing(job.namespace, job.queue, job.type))


def _listed(missing: Missing) -> str:
    who = f"{missing.workers} live worker{'s' if missing.workers > 1 else ''}"
    verb = "list" if missing.workers > 1 else "lists"
    more = len(missing.listed) - SHOWN
    shown = ", ".join(missing.listed[:SHOWN]) or "nothing"
    return f"{who} {verb} {shown}" + (f" and {more} more" if more > 0 else "")
