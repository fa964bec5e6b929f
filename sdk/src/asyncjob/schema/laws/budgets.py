"""What an attempt that does not succeed costs: retries, crashes, releases."""

from typing import Final

from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.transitions import EDGES, Counter
from asyncjob.schema.laws.expressions import one_of, same
from asyncjob.schema.laws.law import Law, Write

FAILED: Final = (Reason.HANDLER_FAILED, Reason.RETRY_REQUESTED, Reason.EXECUTION_TIMEOUT)
"""Reasons for which an attempt costs a retry."""

CRASHED: Final = (Reason.LEASE_EXPIRED, Reason.WORKER_CRASHED, Reason.HANDLER_CRASHED)
"""Reasons for which an attempt costs a crash."""

_REASON: Final = "now.?reason.orValue('')"


def _budget(counter: Counter, name: str) -> Law:
    """Return the law of a counter: it grows by one, on the edges that name it."""
    targets = [edge.target for edge in EDGES if counter in edge.grows]
    grows = (
        f"now.{counter} == was.{counter} + 1 && was.phase == 'Running'"
        f" && now.phase in {one_of(targets)}"
    )
    return Law(
        f"budget.{counter}",
        f"{name} grow by at most one, only from Running to {' or '.join(targets)}; a redrive, and "
        "nothing else, sets them to 0.",
        {
            Write.CLAIM: same(counter),
            Write.MOVE: f"redriven ? now.{counter} == 0 : {same(counter)} || ({grows})",
            Write.STAY: same(counter),
        },
        f"'{counter} cannot go from ' + string(was.{counter}) + ' to ' + string(now.{counter})"
        " + ' with the phase going from ' + was.phase + ' to ' + now.phase",
    )


RETRIES: Final = _budget(Counter.RETRIES, "Retries")
CRASHES: Final = _budget(Counter.CRASHES, "Crashes")
RELEASES: Final = _budget(Counter.RELEASES, "Releases")
RETRIES_LEFT: Final = Law(
    "budget.retries-left",
    "Retries do not grow beyond effective.maxRetries.",
    {Write.MOVE: "now.retries <= was.retries || now.retries <= now.effective.maxRetries"},
)
RELEASE_COUNTED: Final = Law(
    "budget.release-counted",
    "A job that goes from Running to Queued has been released once more.",
    {
        Write.MOVE: "was.phase != 'Running' || now.phase != 'Queued'"
        " || now.releases > was.releases",
    },
)
SPENT: Final = Law(
    "budget.spent",
    "Going from Running to Retrying costs a retry, a crash or a release.",
    {
        Write.MOVE: "now.phase != 'Retrying' || now.retries > was.retries"
        " || now.crashes > was.crashes || now.releases > was.releases",
    },
)
BY_REASON: Final = Law(
    "budget.by-reason",
    f"On the way to Retrying a failure ({', '.join(FAILED)}), and nothing else, costs a retry; "
    f"a crash ({', '.join(CRASHED)}) costs a crash.",
    {
        Write.MOVE: "now.phase != 'Retrying' || now.retries + now.crashes + now.releases"
        " == was.retries + was.crashes + was.releases"
        f" || ((now.retries > was.retries) == ({_REASON} in {one_of(FAILED)})"
        f" && (!({_REASON} in {one_of(CRASHED)}) || now.crashes > was.crashes))",
    },
)
