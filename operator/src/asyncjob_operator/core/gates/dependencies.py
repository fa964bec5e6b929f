"""Closed while a job in `spec.dependsOn` has not finished as it has to.

It is asked before the first start alone, and not of a job that was already let through: a job that
disappears after it has finished takes nothing back.
"""

from typing import Final

from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import ChildrenFinished
from asyncjob_operator.core.gates.closed import ClosedGate
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot
from asyncjob_operator.core.ties import DependencyState

MAX_DEPENDENCIES_NAMED: Final = 3
"""So many of the jobs that are waited for are named."""


def dependency_gate(snapshot: Snapshot, _now: Now) -> ClosedGate | None:
    """Return closed, naming what is waited for."""
    unmet = snapshot.dependencies.unmet
    if snapshot.job.admitted or not unmet:
        return None
    return ClosedGate(Reason.WAITING_FOR_DEPENDENCY, _waiting_message(unmet))


def children_precondition(snapshot: Snapshot) -> ChildrenFinished | None:
    """Return what a live read has to show before the gate is taken for open.

    A job and its last child may be seen in another order than they were written.
    """
    families = [(need.job.uid, need) for need in snapshot.dependencies.with_children if need.job]
    if not families:
        return None
    parents = tuple(uid for uid, _ in families)
    to_succeed = tuple(uid for uid, need in families if not need.dependency.any_outcome)
    return ChildrenFinished(snapshot.job.namespace, parents, to_succeed)


def _waiting_message(unmet: tuple[DependencyState, ...]) -> str:
    names, more = (
        [_dependency_text(need) for need in unmet[:MAX_DEPENDENCIES_NAMED]],
        len(unmet) - MAX_DEPENDENCIES_NAMED,
    )
    if more > 0:
        return f"waiting for {', '.join(names)} and {more} more"
    return f"waiting for {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"


def _dependency_text(state: DependencyState) -> str:
    name = state.dependency.name
    if state.job is None:
        return f"{name} (does not exist)"
    if state.job.finished and state.open_children:
        return f"children of {name}"
    return name
