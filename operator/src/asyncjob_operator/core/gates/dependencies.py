"""Closed while a job in `spec.dependsOn` has not finished as it has to.

It is asked before the first start alone, and not of a job that was already let through: a job that
disappears after it has finished takes nothing back.
"""

from typing import Final

from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import Childless
from asyncjob_operator.core.gates.closed import Closed
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot
from asyncjob_operator.core.ties import Need

SHOWN: Final = 3
"""So many of the jobs that are waited for are named."""


def dependencies(snapshot: Snapshot, _now: Moment) -> Closed | None:
    """Return closed, naming what is waited for."""
    unmet = snapshot.ties.unmet
    if snapshot.job.admitted or not unmet:
        return None
    return Closed(Reason.WAITING_FOR_DEPENDENCY, _waiting(unmet))


def childless(snapshot: Snapshot) -> Childless | None:
    """Return what a live read has to show before the gate is taken for open.

    A job and its last child may be seen in another order than they were written.
    """
    families = [(need.job.uid, need) for need in snapshot.ties.families if need.job]
    if not families:
        return None
    parents = tuple(uid for uid, _ in families)
    to_succeed = tuple(uid for uid, need in families if not need.dependency.any_end)
    return Childless(snapshot.job.namespace, parents, to_succeed)


def _waiting(unmet: tuple[Need, ...]) -> str:
    names, more = [_name(need) for need in unmet[:SHOWN]], len(unmet) - SHOWN
    if more > 0:
        return f"waiting for {', '.join(names)} and {more} more"
    return f"waiting for {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"


def _name(need: Need) -> str:
    name = need.dependency.name
    if need.job is None:
        return f"{name} (does not exist)"
    if need.job.finished and need.open_children:
        return f"children of {name}"
    return name
