"""`executionTimeoutSeconds`, where the worker failed to end the attempt itself."""

from typing import Final

from asyncjob.lifecycle.outcome import Failure, fail
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import BUILT_IN_POLICY
from asyncjob_operator.core.decision import ChangePhase, PolicyResult, Wait
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

EXECUTION_TIMEOUT: Final = "execution-timeout"
TIMEOUT_CATEGORY: Final = "Timeout"


def enforce_execution_timeout(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Fail an attempt that has run for too long since this replica first saw its claim."""
    job = snapshot.job
    limit = (job.effective or BUILT_IN_POLICY).execution_timeout_seconds
    ends_at = snapshot.observation.entered_at + limit + snapshot.options.timeout_margin
    if now.monotonic < ends_at:
        return Wait(ends_at)
    failure = Failure(
        type=Reason.EXECUTION_TIMEOUT.value,
        category=TIMEOUT_CATEGORY,
        message=f"the attempt ran longer than {limit} s and its worker did not end it",
        reason=Reason.EXECUTION_TIMEOUT,
    )
    return ChangePhase(EXECUTION_TIMEOUT, fail(job, failure, now=now.timestamp, draw=now.jitter))
