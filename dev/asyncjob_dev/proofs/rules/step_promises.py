"""What is promised of each step from a version of a job to the next, written without the rules.

The formulas read fields of both versions and ask who has written; they know nothing of CEL.
"""

from typing import Final, cast

import z3

from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.waits import WaitKind
from asyncjob.models import AsyncJobSpec
from asyncjob.rules.job_spec import CONTROL_FIELDS
from asyncjob_dev.proofs.rules.symbols import (
    MAP_KEYS,
    Bool,
    Number,
    Record,
    all_of,
    any_of,
    implies,
    is_same,
    negation,
    same_truth,
)
from asyncjob_dev.proofs.rules.versions import (
    COUNTERS,
    FINISHED,
    MAX_HISTORY,
    WAITING,
    Promise,
    Step,
)


def _final(step: Step) -> Bool:
    return implies(step.was.phase(Phase.SUCCEEDED, Phase.CANCELLED), step.kept_phase)


def _runs_from_the_queue(step: Step) -> Bool:
    succeeded = all_of(negation(step.kept_phase), step.now.phase(Phase.SUCCEEDED))
    return all_of(
        implies(step.claimed, step.was.phase(Phase.QUEUED)),
        implies(succeeded, step.was.phase(Phase.RUNNING)),
    )


def _attempt_counts_claims(step: Step) -> Bool:
    before, after = step.was.number("status.attempt"), step.now.number("status.attempt")
    return cast("Bool", after == before + z3.If(step.claimed, 1, 0))


def _claim_is_new(step: Step) -> Bool:
    return same_truth(step.kept("status.claim"), negation(step.claimed))


def _attempt_is_fixed(step: Step) -> Bool:
    first = "status.firstStartTime"
    fixed = step.kept("status.startTime", first, "status.effective")
    kept_first = implies(step.was.has(first), step.kept(first))
    return all_of(kept_first, any_of(step.claimed, fixed))


def _claim_is_allowed(step: Step) -> Bool:
    stopped = any_of(step.was.flag("spec.suspend"), step.was.flag("spec.cancel"))
    admitted = implies(step.was.gated, step.was.flag("status.admitted"))
    return implies(step.claimed, all_of(negation(stopped), admitted))


def _admission_is_used_once(step: Step) -> Bool:
    changed = negation(step.kept("status.admitted"))
    taken_back = negation(step.now.has("status.admitted"))
    return all_of(
        implies(changed, any_of(step.now.phase(Phase.QUEUED), taken_back)),
        implies(any_of(step.ended, step.redriven), taken_back),
        negation(all_of(changed, step.now.phase(Phase.RUNNING))),
    )


def _lease_is_kept(step: Step) -> Bool:
    names = ("holder", "holderUID", "worker", "acquireTime", "durationSeconds")
    before, after = (seen.number("status.lease.renewals") for seen in (step.was, step.now))
    fixed = all_of(
        step.kept(*(f"status.lease.{name}" for name in names)), cast("Bool", after >= before)
    )
    return all_of(
        implies(all_of(step.kept_phase, step.now.phase(Phase.RUNNING)), fixed),
        implies(step.claimed, cast("Bool", after == 0)),
    )


def _work_is_kept(step: Step) -> Bool:
    return any_of(step.was.phase(Phase.RUNNING), step.kept("status.progress", "status.checkpoint"))


def _steps_are_added(step: Step) -> Bool:
    """Return that no step that is done changes, and that none is added but to a running job."""
    steps = [f"status.steps.{key}" for key in MAP_KEYS]
    kept = [implies(step.was.has(path), step.kept(path)) for path in steps]
    runs_on = all_of(step.kept_phase, step.was.phase(Phase.RUNNING))
    return all_of(any_of(runs_on, step.kept("status.steps")), *kept)


def _finished_is_frozen(step: Step) -> Bool:
    status = cast("Record", step.was.entry("status").value)
    fields = [f"status.{name}" for name in status.fields if name != "reruns"]
    return implies(all_of(step.was.phase(*FINISHED), step.kept_phase), step.kept(*fields))


PARKED: Final = (Phase.SCHEDULED, Phase.PENDING)
"""Where an attempt ends that parks the job."""


def _parks(step: Step) -> Bool:
    return all_of(step.ended, step.now.phase(*PARKED))


def _parks_or_wakes(step: Step) -> Bool:
    """Return that an attempt ends by a park, or that a parked job is queued again."""
    woken = all_of(step.was.has("status.waiting"), step.now.phase(Phase.QUEUED))
    return any_of(_parks(step), woken)


def _parked_says_for_what(step: Step) -> Bool:
    same = step.kept("status.waiting")
    said = same_truth(step.now.has("status.waiting"), _parks(step))
    return z3.If(step.kept_phase, same, said)


def _waits_keep_their_ends(step: Step) -> Bool:
    runs = step.was.phase(Phase.RUNNING)
    said = []
    for key in MAP_KEYS:
        wait = f"status.waits.{key}"
        sleep = step.was.text(f"{wait}.kind", WaitKind.SLEEP)
        dropped = all_of(step.redriven, negation(sleep), negation(step.now.has(wait)))
        over = implies(step.was.has(f"{wait}.over"), step.now.has(f"{wait}.over"))
        kept = all_of(step.kept(f"{wait}.kind", f"{wait}.until"), over)
        added = implies(step.now.has(wait), runs)
        said.append(z3.If(step.was.has(wait), any_of(kept, dropped), added))
    return all_of(*said)


def _signals_are_added(step: Step) -> Bool:
    """Return that no signal that was sent changes, and that none is sent to a finished job."""
    said = []
    for key in MAP_KEYS:
        signal = f"spec.signals.{key}"
        sent = implies(step.now.has(signal), negation(step.was.phase(*FINISHED)))
        said.append(z3.If(step.was.has(signal), step.kept(signal), sent))
    return all_of(*said)


def _history_is_appended(step: Step) -> Bool:
    before, after = step.was.history, step.now.history
    grows = all_of(
        negation(step.kept_phase), negation(step.claimed), negation(_parks_or_wakes(step))
    )
    full = cast("Bool", before.size == MAX_HISTORY)
    dropped = cast("Number", z3.If(full, 1, 0))
    omitted = [seen.number("status.historyOmitted") for seen in (step.was, step.now)]
    kept = []
    for place in range(MAX_HISTORY):
        was_there = cast("Bool", before.size > place)
        if place:
            moved = is_same(before.entries[place], after.entries[place - 1])
            kept.append(implies(all_of(was_there, full), moved))
        stays = is_same(before.entries[place], after.entries[place])
        kept.append(implies(all_of(was_there, negation(full)), stays))
    appended = all_of(
        cast("Bool", after.size == before.size + 1 - dropped),
        cast("Bool", omitted[1] == omitted[0] + dropped),
        *kept,
    )
    same = all_of(step.kept("status.history"), cast("Bool", omitted[1] == omitted[0]))
    return z3.If(grows, appended, same)


def _phase_is_explained(step: Step) -> Bool:
    fixed = step.kept("status.lastTransitionTime", "status.error")
    reason = any_of(step.kept("status.reason"), step.now.phase(Phase.PENDING))
    timed = step.now.has("status.lastTransitionTime")
    waits = step.kept("status.retryDelaySeconds", "status.nextAttemptTime")
    return z3.If(step.kept_phase, all_of(fixed, reason, waits), timed)


def _costs_grow_by_one(step: Step) -> Bool:
    targets = {
        "retries": (Phase.RETRYING,),
        "crashes": (Phase.RETRYING, Phase.QUEUED, Phase.DEAD_LETTER),
        "releases": (Phase.RETRYING, Phase.QUEUED, Phase.DEAD_LETTER),
        "parks": PARKED,
    }
    said = []
    for name, phases in targets.items():
        before, after = (seen.number(f"status.{name}") for seen in (step.was, step.now))
        by_one = all_of(step.ended, step.now.phase(*phases), cast("Bool", after == before + 1))
        otherwise = any_of(cast("Bool", after == before), by_one)
        said.append(z3.If(step.redriven, cast("Bool", after == 0), otherwise))
    return all_of(*said)


def _retries_are_limited(step: Step) -> Bool:
    limit = step.now.number("status.effective.maxRetries")
    within = cast("Bool", step.now.number("status.retries") <= limit)
    return implies(step.grown("retries"), within)


def _attempts_cost(step: Step) -> Bool:
    some = any_of(*map(step.grown, COUNTERS))
    return implies(all_of(step.ended, step.now.phase(*WAITING)), some)


def _costs_fit_the_reason(step: Step) -> Bool:
    failed = step.now.reason(
        Reason.HANDLER_FAILED, Reason.RETRY_REQUESTED, Reason.EXECUTION_TIMEOUT
    )
    lost = step.now.reason(Reason.LEASE_EXPIRED, Reason.WORKER_CRASHED)
    crashed = any_of(lost, step.now.reason(Reason.HANDLER_CRASHED))
    crash, release = step.grown("crashes"), step.grown("releases")
    retried = all_of(same_truth(step.grown("retries"), failed), implies(crashed, crash))
    counted = all_of(same_truth(crash, lost), same_truth(release, negation(lost)))
    first = cast("Bool", step.was.number("status.crashes") == 0)
    requeued = all_of(counted, implies(lost, first))
    ends = ((Phase.RETRYING, retried), (Phase.QUEUED, requeued))
    return all_of(*(implies(all_of(step.ended, step.now.phase(to)), fits) for to, fits in ends))


def _redrive_is_asked(step: Step) -> Bool:
    before, after = (seen.number("status.redrives") for seen in (step.was, step.now))
    asked = all_of(
        cast("Bool", after > before), cast("Bool", after == step.now.number("spec.redrive"))
    )
    return z3.If(step.redriven, asked, cast("Bool", after == before))


def _rerun_is_asked(step: Step) -> Bool:
    before, after = (seen.number("status.reruns") for seen in (step.was, step.now))
    asked = cast("Bool", after == step.now.number("spec.rerun"))
    return any_of(cast("Bool", after == before), all_of(cast("Bool", after > before), asked))


def _only_the_holder_writes(step: Step) -> Bool:
    holds = all_of(step.is_pod_of(step.was), step.works)
    status = cast("Record", step.was.entry("status").value)
    fields = [f"status.{name}" for name in status.fields if name != "reruns"]
    untouched = step.kept(*fields)
    taken = all_of(
        step.operates, negation(step.kept_phase), step.kept("status.progress", "status.checkpoint")
    )
    return implies(step.was.phase(Phase.RUNNING), any_of(holds, untouched, taken))


def _claim_is_in_the_own_name(step: Step) -> Bool:
    return implies(step.claimed, all_of(step.is_pod_of(step.now), step.works))


REASONS_OF_HOLDERS: Final = (
    *(Reason.HANDLER_FAILED, Reason.RETRY_REQUESTED, Reason.HANDLER_CRASHED, Reason.RELEASED),
    *(Reason.NOT_RETRYABLE, Reason.INVALID_PAYLOAD, Reason.RESULT_REFUSED),
    *(Reason.SLEEPING, Reason.WAITING_FOR_SIGNAL, Reason.WAITING_FOR_CHILDREN),
)


def _outcome_is_the_holders(step: Step) -> Bool:
    holds = all_of(step.is_pod_of(step.was), step.works)
    theirs = any_of(step.now.phase(Phase.SUCCEEDED), step.now.reason(*REASONS_OF_HOLDERS))
    return implies(all_of(step.ended, theirs), holds)


def _loss_is_the_operators(step: Step) -> Bool:
    lost = step.now.reason(Reason.LEASE_EXPIRED, Reason.WORKER_CRASHED, Reason.WORKER_GONE)
    return implies(all_of(step.ended, lost), step.operates)


def _status_is_written_by_its_owner(step: Step) -> Bool:
    held = any_of(step.was.phase(Phase.RUNNING), step.claimed)
    return any_of(step.kept("status"), held, step.operates)


def _submission_is_fixed(step: Step) -> Bool:
    names = (field.alias or key for key, field in AsyncJobSpec.model_fields.items())
    return step.kept(*(f"spec.{name}" for name in names if name not in CONTROL_FIELDS))


def _requests_grow(step: Step) -> Bool:
    grown = (
        cast("Bool", step.now.number(f"spec.{name}") >= step.was.number(f"spec.{name}"))
        for name in ("redrive", "rerun")
    )
    return all_of(implies(step.was.flag("spec.cancel"), step.now.flag("spec.cancel")), *grown)


def _success_is_not_cancelled(step: Step) -> Bool:
    asked = all_of(step.now.flag("spec.cancel"), negation(step.was.flag("spec.cancel")))
    return implies(step.was.phase(Phase.SUCCEEDED), negation(asked))


STEPS: Final = {
    "final": Promise("Succeeded and Cancelled are final.", of_step=_final),
    "order": Promise(
        "A job runs only from Queued, and succeeds only from Running.",
        of_step=_runs_from_the_queue,
    ),
    "attempt": Promise(
        "The attempt grows by one with each claim, and with nothing else.",
        of_step=_attempt_counts_claims,
    ),
    "claim": Promise(
        "Each claim has an id unlike the one before; nothing else changes it.",
        of_step=_claim_is_new,
    ),
    "attempt-fixed": Promise(
        "Start and policy of an attempt change with the next claim only.",
        of_step=_attempt_is_fixed,
    ),
    "claimable": Promise(
        "A suspended, cancelled or not admitted job is not claimed.", of_step=_claim_is_allowed
    ),
    "admission": Promise(
        "An admission is given while Queued and is over when the attempt is.",
        of_step=_admission_is_used_once,
    ),
    "lease": Promise(
        "A lease begins unrenewed, keeps its holder, and its renewals never shrink.",
        of_step=_lease_is_kept,
    ),
    "checkpoint": Promise(
        "Progress and checkpoint change only while the job runs or as its attempt ends.",
        of_step=_work_is_kept,
    ),
    "steps": Promise(
        "A step that is done stays as it is; steps are added only while the job runs.",
        of_step=_steps_are_added,
    ),
    "waits": Promise(
        "A wait keeps its end, and one that is over stays so; waits are added only by who runs the "
        "job, and a redrive drops none but those for signals.",
        of_step=_waits_keep_their_ends,
    ),
    "signals": Promise(
        "A signal that was sent stays as it is, and none is sent to a finished job.",
        of_step=_signals_are_added,
    ),
    "parked": Promise(
        "A job says what it is parked for, from the park to its next change of phase.",
        of_step=_parked_says_for_what,
    ),
    "frozen": Promise(
        "Nothing of a finished job changes, but reruns, redrive and dismissal.",
        of_step=_finished_is_frozen,
    ),
    "appended": Promise(
        "The history is only appended to, and counts what it drops.", of_step=_history_is_appended
    ),
    "explained": Promise(
        "Reason, error and times of a phase are set as it begins.", of_step=_phase_is_explained
    ),
    "cost-by-one": Promise(
        "Retries, crashes, releases and parks grow by one as an attempt ends; a redrive sets them "
        "to 0.",
        of_step=_costs_grow_by_one,
    ),
    "retry-limit": Promise("A retry is within the policy in force.", of_step=_retries_are_limited),
    "cost": Promise("An attempt that ends unfinished costs something.", of_step=_attempts_cost),
    "cost-by-reason": Promise(
        "A failure costs a retry, a crash costs a crash.", of_step=_costs_fit_the_reason
    ),
    "redrive": Promise("A redrive happens once for each request.", of_step=_redrive_is_asked),
    "rerun": Promise("Reruns follow what was asked for.", of_step=_rerun_is_asked),
    "holder": Promise(
        "A running job is changed only by the holder of its lease, or taken from it as it is: a "
        "fenced attempt changes nothing.",
        of_step=_only_the_holder_writes,
    ),
    "own-name": Promise("A pod claims in its own name only.", of_step=_claim_is_in_the_own_name),
    "outcome": Promise(
        "Only the holder says that a handler succeeded, failed or gave up.",
        of_step=_outcome_is_the_holders,
    ),
    "loss": Promise(
        "Only the operator says that a worker is lost.", of_step=_loss_is_the_operators
    ),
    "writers": Promise(
        "The status of a job that does not run is the operator's.",
        of_step=_status_is_written_by_its_owner,
    ),
    "rerun-writer": Promise(
        "Only the operator acknowledges a rerun.",
        of_step=lambda step: any_of(step.kept("status.reruns"), step.operates),
    ),
    "submission": Promise("What was submitted never changes.", of_step=_submission_is_fixed),
    "requests": Promise("A request is not taken back.", of_step=_requests_grow),
    "too-late": Promise("A succeeded job is not cancelled.", of_step=_success_is_not_cancelled),
    "priority": Promise(
        "The priority of a running job is fixed.",
        of_step=lambda step: implies(step.was.phase(Phase.RUNNING), step.kept("spec.priority")),
    ),
}
"""Promises about each step from a version to the next."""
