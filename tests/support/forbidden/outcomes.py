"""What the holder of a running job may not report while it runs, and how it may not end it."""

from dataclasses import replace
from typing import Any, Final

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase
from support.cluster.api import Answer
from support.driven.lives import (
    LEFT_OUT,
    cancelled,
    failed,
    given_up,
    released,
    succeeded,
)
from support.forbidden.case import Case, ForbiddenSetup, outcome, report
from support.objects.builders import at

_ERROR: Final = {"type": "E", "category": "Internal", "message": "m"}
_COMPLETE: Final = {"type": "Complete", "status": "True", "lastTransitionTime": at()}
_REFERENCE: Final = {"uri": "s3://a", "sizeBytes": 1, "sha256": "0" * 64}


def _failed_under_the_built_in_policy(view: JobView) -> PhaseChange:
    return failed(replace(view, effective=None))


def _as_failed(conditions: Any) -> Any:
    return [{**conditions[0], "type": "Failed"}]


def _rewritten(entries: Any) -> Any:
    return [{**entries[0], "message": "nothing happened"}, *entries[1:]]


def _history_rewritten(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    life.move(released, setup.worker.client).object()
    life.claim()
    return life.move(succeeded, setup.acting(setup.worker.client), history=_rewritten)


def _by_the_claim_before(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    before = life.status()
    life.move(released, setup.worker.client).object()
    life.claim()
    stale = {"attempt": before["attempt"], "claim": before["claim"]}
    return life.move(succeeded, setup.acting(setup.worker.client), **stale)


def _by_a_claim_of_a_namesake(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    before = life.status()
    life.admin.delete(life.path).object()
    life.create()
    life.claim()
    stale = {"attempt": before["attempt"], "claim": before["claim"]}
    return life.move(succeeded, setup.acting(setup.worker.client), **stale)


OUTCOMES: Final[tuple[Case, ...]] = (
    outcome("transition.reason", "success with a reason", succeeded, reason="HandlerFailed"),
    outcome(
        "transition.reason", "a retry for a reason of dead letters", given_up, reason="Released"
    ),
    outcome("claim.attempt", "success that raises the attempt", succeeded, attempt=2),
    Case("claim.attempt", "success of its own pod's claim before a requeue", _by_the_claim_before),
    Case("claim.id", "success of a claim of a deleted job of that name", _by_a_claim_of_a_namesake),
    outcome("claim.start-time", "success that moves the start", succeeded, startTime=at(60)),
    outcome("claim.effective", "success that drops the policy", succeeded, effective=None),
    outcome("claim.admitted", "a release that stays admitted", released, admitted=True),
    outcome("lease.iff-running", "success that keeps the lease", succeeded, lease=LEFT_OUT),
    outcome("budget.retries", "a failure that costs two retries", failed, retries=2),
    outcome("budget.retries", "success that costs a retry", succeeded, retries=1),
    outcome("budget.crashes", "success that costs a crash", succeeded, crashes=1),
    outcome("budget.releases", "a release that costs two", released, releases=2),
    outcome(
        "budget.retries-left",
        "a retry beyond the last",
        _failed_under_the_built_in_policy,
        spec={"retryPolicy": {"maxRetries": 0}},
    ),
    outcome("budget.requeue-counted", "a release for free", released, releases=LEFT_OUT),
    outcome("budget.requeue-counted", "a release that costs a crash", released, crashes=1),
    outcome("budget.spent", "a retry for free", failed, reason="Released", retries=LEFT_OUT),
    outcome("budget.by-reason", "a failure as a release", failed, retries=LEFT_OUT, releases=1),
    outcome("precondition.cancel", "a cancellation nobody asked for", cancelled),
    outcome(
        "finished.completion-time", "success without a time", succeeded, completionTime=LEFT_OUT
    ),
    outcome("finished.completion-time", "a retry with one", failed, completionTime=at(9)),
    outcome("finished.condition", "success without a condition", succeeded, conditions=LEFT_OUT),
    outcome("finished.condition", "success with the wrong one", succeeded, conditions=_as_failed),
    outcome("retrying.delay", "a retry without a delay", failed, retryDelaySeconds=LEFT_OUT),
    outcome("retrying.delay", "success with a next attempt", succeeded, nextAttemptTime=at(60)),
    outcome(
        "steady.last-transition-time", "success at no time", succeeded, lastTransitionTime=None
    ),
    outcome("result.by-success", "a dead letter with a result", given_up, result={"sum": 3}),
    outcome("result.by-success", "a retry with a reference to one", failed, resultRef=_REFERENCE),
    outcome(
        "result.once", "success with a result and a reference", succeeded, resultRef=_REFERENCE
    ),
    outcome("history.grows", "success without a trace", succeeded, history=LEFT_OUT),
    outcome(
        "history.grows",
        "success as something else",
        succeeded,
        history=[
            {"time": at(9), "phase": "Cancelled"},
        ],
    ),
    Case("history.kept", "success that rewrites the past", _history_rewritten),
    outcome("history.omitted", "success that hides the past", succeeded, historyOmitted=5),
    outcome("precondition.redrive", "success that acknowledges a redrive", succeeded, redrives=1),
)


def _renewals_back(setup: ForbiddenSetup) -> Answer:
    life = setup.life(Phase.RUNNING)
    renewed: dict[str, Any] = {"status": {"lease": {"renewals": 2, "renewTime": at(20)}}}
    setup.worker.client.merge(life.status_path, renewed).object()
    body = {"status": {"lease": {"renewals": 1, "renewTime": at(40)}}}
    return setup.acting(setup.worker.client).merge(life.status_path, body)


def _lease_handed_on(setup: ForbiddenSetup) -> Answer:
    return _report_of_lease(setup, holder=setup.other.pod)


def _lease_of_another_process(setup: ForbiddenSetup) -> Answer:
    return _report_of_lease(setup, worker=f"{setup.worker.pod}/2")


def _report_of_lease(setup: ForbiddenSetup, **lease: str) -> Answer:
    life = setup.life(Phase.RUNNING)
    changes = {"status": {"lease": lease}}
    return setup.acting(setup.worker.client).merge(life.status_path, changes)


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
    Case("lease.held", "a report that hands the lease on", _lease_handed_on),
    Case("lease.held", "a report for another process", _lease_of_another_process),
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
