"""What an attempt that does not succeed costs: retries, crashes, releases."""

from typing import Final

from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.transitions import TRANSITIONS, StatusCounter
from asyncjob.schema.laws.expressions import cel_list, unchanged
from asyncjob.schema.laws.law import Rule, StatusWrite

FAILURE_REASONS: Final = (Reason.HANDLER_FAILED, Reason.RETRY_REQUESTED, Reason.EXECUTION_TIMEOUT)
"""Reasons for which an attempt costs a retry."""

CRASH_REASONS: Final = (Reason.LEASE_EXPIRED, Reason.WORKER_CRASHED, Reason.HANDLER_CRASHED)
"""Reasons for which an attempt costs a crash."""

_REASON: Final = "now.?reason.orValue('')"


def _counter_rule(counter: StatusCounter, name: str) -> Rule:
    """Return the law of a counter: it grows by one, on the edges that name it."""
    targets = [edge.target for edge in TRANSITIONS if counter in edge.incremented]
    grows = (
        f"now.{counter} == was.{counter} + 1 && was.phase == 'Running'"
        f" && now.phase in {cel_list(targets)}"
    )
    return Rule(
        f"budget.{counter}",
        f"{name} grow by at most one, only from Running to {' or '.join(targets)}; a redrive, and "
        "nothing else, sets them to 0.",
        {
            StatusWrite.CLAIM: unchanged(counter),
            StatusWrite.PHASE_CHANGE: f"redriven ? now.{counter} == 0 : {unchanged(counter)} || "
            f"({grows})",
            StatusWrite.SAME_PHASE: unchanged(counter),
        },
        f"'{counter} cannot go from ' + string(was.{counter}) + ' to ' + string(now.{counter})"
        " + ' with the phase going from ' + was.phase + ' to ' + now.phase",
    )


BUDGET_RETRIES: Final = _counter_rule(StatusCounter.RETRIES, "Retries")
BUDGET_CRASHES: Final = _counter_rule(StatusCounter.CRASHES, "Crashes")
BUDGET_RELEASES: Final = _counter_rule(StatusCounter.RELEASES, "Releases")
BUDGET_RETRIES_LEFT: Final = Rule(
    "budget.retries-left",
    "Retries do not grow beyond effective.maxRetries.",
    {
        StatusWrite.PHASE_CHANGE: "now.retries <= was.retries || now.retries <= "
        "now.effective.maxRetries"
    },
)
BUDGET_RELEASE_COUNTED: Final = Rule(
    "budget.release-counted",
    "A job that goes from Running to Queued has been released once more.",
    {
        StatusWrite.PHASE_CHANGE: "was.phase != 'Running' || now.phase != 'Queued'"
        " || now.releases > was.releases",
    },
)
BUDGET_SPENT: Final = Rule(
    "budget.spent",
    "Going from Running to Retrying costs a retry, a crash or a release.",
    {
        StatusWrite.PHASE_CHANGE: "now.phase != 'Retrying' || now.retries > was.retries"
        " || now.crashes > was.crashes || now.releases > was.releases",
    },
)
BUDGET_BY_REASON: Final = Rule(
    "budget.by-reason",
    f"On the way to Retrying a failure ({', '.join(FAILURE_REASONS)}), and nothing else, costs a "
    "retry; "
    f"a crash ({', '.join(CRASH_REASONS)}) costs a crash.",
    {
        StatusWrite.PHASE_CHANGE: "now.phase != 'Retrying' || now.retries + now.crashes + "
        "now.releases"
        " == was.retries + was.crashes + was.releases"
        f" || ((now.retries > was.retries) == ({_REASON} in {cel_list(FAILURE_REASONS)})"
        f" && (!({_REASON} in {cel_list(CRASH_REASONS)}) || now.crashes > was.crashes))",
    },
)
