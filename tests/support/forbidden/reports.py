"""What the holder of a running job may not change while it runs."""

from typing import Any, Final

from asyncjob.lifecycle.phases import Phase
from support.cluster.api import Answer
from support.forbidden.case import Case, ForbiddenSetup, report
from support.objects.builders import at

_ERROR: Final = {"type": "E", "category": "Internal", "message": "m"}
_COMPLETE: Final = {"type": "Complete", "status": "True", "lastTransitionTime": at()}


def _renewals_back(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    renewed: dict[str, Any] = {"status": {"lease": {"renewals": 2, "renewTime": at(20)}}}
    setup.worker.client.merge(life.status_path, renewed).object()
    body = {"status": {"lease": {"renewals": 1, "renewTime": at(40)}}}
    return setup.acting(setup.worker.client).merge(life.status_path, body)


REPORTS: Final[tuple[Case, ...]] = (
    report("claim.attempt", "a report that raises the attempt", attempt=2),
    report("claim.id", "a report with another claim", claim="another"),
    report("claim.start-time", "a report that moves the start", startTime=at(60)),
    report("claim.first-start-time", "a report that moves the first start", firstStartTime=at(60)),
    report("claim.effective", "a report that allows more retries", effective={"maxRetries": 99}),
    report("claim.admitted", "a report that admits its job", admitted=True),
    report("transition.reason", "a report with a reason", reason="Released"),
    report("lease.iff-running", "a report that drops the lease", lease=None),
    report("lease.held", "a report that lengthens the lease", lease={"durationSeconds": 600}),
    report("lease.held", "a report that hands the lease on", lease={"holder": "worker-1"}),
    report("lease.held", "a report for another process", lease={"worker": "worker-0/2"}),
    report("lease.held", "a report that moves the claim", lease={"acquireTime": at(60)}),
    Case("lease.renewals-grow", "a heartbeat that counts backwards", _renewals_back),
    report("budget.retries", "a report that raises retries", retries=1),
    report("budget.crashes", "a report that raises crashes", crashes=1),
    report("budget.releases", "a report that raises releases", releases=1),
    report("precondition.redrive", "a report that acknowledges a redrive", redrives=1),
    report("finished.completion-time", "a report of completion", completionTime=at(60)),
    report("finished.condition", "a report of a condition", conditions=[_COMPLETE]),
    report("retrying.delay", "a report of a delay", retryDelaySeconds=5, nextAttemptTime=at(60)),
    report("steady.last-transition-time", "a report of a change", lastTransitionTime=at(60)),
    report("steady.error", "a report of an error", error=_ERROR),
    report("result.by-success", "a result while the job runs", result={"sum": 3}),
    report(
        "result.by-success",
        "a reference to a result while the job runs",
        resultRef={
            "uri": "s3://a",
            "sizeBytes": 1,
            "sha256": "0" * 64,
        },
    ),
    report(
        "history.grows", "a report that writes history", history=[{"time": at(), "phase": "Queued"}]
    ),
    report("history.omitted", "a report that hides history", historyOmitted=3),
)
