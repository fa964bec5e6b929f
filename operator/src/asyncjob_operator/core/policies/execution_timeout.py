"""`executionTimeoutSeconds`, where the worker failed to end the attempt itself."""

from typing import Final

from asyncjob.lifecycle.outcome import Failure, fail
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import BUILT_IN
from asyncjob_operator.core.decision import Transition, Verdict, Wait
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "execution-timeout"
CATEGORY: Final = "Timeout"


def execution_timeout(snapshot: Snapshot, now: Moment) -> Verdict:
    """Fail an attempt that has run for too long since this replica first saw its claim."""
    job = snapshot.job
    limit = (job.effective or BUILT_IN).execution_timeout_seconds
    ends_at = snapshot.seen.since + limit + snapshot.options.timeout_margin
    if now.monotonic < ends_at:
        return Wait(ends_at)
    failure = Failure(
        type=Reason.EXECUTION_TIMEOUT.value,
        category=CATEGORY,
        message=f"the attempt ran longer than {limit} s and its worker did not end it",
        reason=Reason.EXECUTION_TIMEOUT,
    )
    return Transition(NAME, fail(job, failure, now=now.text, draw=now.draw))
