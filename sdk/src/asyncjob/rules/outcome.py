"""Rules of how an attempt ends: what it costs, and what a retrying or finished job has.

Retries, crashes and releases grow on the transitions of the table that name them. Result, progress
and checkpoint change only while the job runs or as it leaves Running.
"""

from typing import Final

from asyncjob.lifecycle.phases import LOST_WORKER_REASONS, Reason
from asyncjob.lifecycle.transitions import TRANSITIONS, StatusCounter
from asyncjob.rules.rule import (
    Rule,
    StatusWrite,
    cel_list,
    count,
    grew,
    unchanged,
    unchanged_json,
)

FAILURE_REASONS: Final = (Reason.HANDLER_FAILED, Reason.RETRY_REQUESTED, Reason.EXECUTION_TIMEOUT)
"""Reasons for which an attempt costs a retry."""

CRASH_REASONS: Final = (Reason.LEASE_EXPIRED, Reason.WORKER_CRASHED, Reason.HANDLER_CRASHED)
"""Reasons for which an attempt costs a crash."""

_REASON: Final = "now.?reason.orValue('')"


def _counter_rule(counter: StatusCounter, name: str) -> Rule:
    """Return the rule of a counter: it grows by one, on the transitions that name it."""
    targets = [transition.target for transition in TRANSITIONS if counter in transition.incremented]
    grows = (
        f"{count(counter)} == {count(counter, 'was')} + 1 && was.phase == 'Running'"
        f" && now.phase in {cel_list(targets)}"
    )
    return Rule(
        f"budget.{counter}",
        f"{name} grow by at most one, only from Running to {' or '.join(targets)}; a redrive, and "
        "nothing else, sets them to 0.",
        {
            StatusWrite.CLAIM: unchanged(counter),
            StatusWrite.PHASE_CHANGE: f"redriven ? {count(counter)} == 0 : {unchanged(counter)} || "
            f"({grows})",
            StatusWrite.SAME_PHASE: unchanged(counter),
        },
        f"'{counter} cannot go from ' + string({count(counter, 'was')}) + ' to '"
        f" + string({count(counter)})"
        " + ' with the phase going from ' + was.phase + ' to ' + now.phase",
    )


BUDGET_RETRIES: Final = _counter_rule(StatusCounter.RETRIES, "Retries")
BUDGET_CRASHES: Final = _counter_rule(StatusCounter.CRASHES, "Crashes")
BUDGET_RELEASES: Final = _counter_rule(StatusCounter.RELEASES, "Releases")
BUDGET_PARKS: Final = _counter_rule(StatusCounter.PARKS, "Parks")
BUDGET_RETRIES_LEFT: Final = Rule(
    "budget.retries-left",
    "retries must not exceed effective.maxRetries.",
    {
        StatusWrite.PHASE_CHANGE: f"!({grew('retries')}) || "
        f"{count('retries')} <= now.effective.maxRetries"
    },
)
BUDGET_REQUEUE_COUNTED: Final = Rule(
    "budget.requeue-counted",
    f"A job that goes from Running to Queued has crashed for the first time, if its worker is lost "
    f"({', '.join(sorted(LOST_WORKER_REASONS))}), or else has been released once more.",
    {
        StatusWrite.PHASE_CHANGE: "was.phase != 'Running' || now.phase != 'Queued'"
        f" || ({_REASON} in {cel_list(sorted(LOST_WORKER_REASONS))}"
        f" ? {count('crashes')} == 1 && {count('crashes', 'was')} == 0 && {unchanged('releases')}"
        f" : ({grew('releases')}) && {unchanged('crashes')})",
    },
)
BUDGET_PARK_COUNTED: Final = Rule(
    "budget.park-counted",
    "A job that goes from Running to Scheduled or Pending has been parked once more.",
    {StatusWrite.PHASE_CHANGE: f"!parked || {grew('parks')}"},
)
BUDGET_SPENT: Final = Rule(
    "budget.spent",
    "Going from Running to Retrying costs a retry, a crash or a release.",
    {
        StatusWrite.PHASE_CHANGE: f"now.phase != 'Retrying' || {grew('retries')}"
        f" || {grew('crashes')} || {grew('releases')}",
    },
)
BUDGET_BY_REASON: Final = Rule(
    "budget.by-reason",
    f"On the way to Retrying a failure ({', '.join(FAILURE_REASONS)}), and nothing else, costs a "
    "retry; "
    f"a crash ({', '.join(CRASH_REASONS)}) costs a crash.",
    {
        StatusWrite.PHASE_CHANGE: "now.phase != 'Retrying'"
        f" || ({unchanged('retries')} && {unchanged('crashes')} && {unchanged('releases')})"
        f" || (({grew('retries')}) == ({_REASON} in {cel_list(FAILURE_REASONS)})"
        f" && (!({_REASON} in {cel_list(CRASH_REASONS)}) || {grew('crashes')}))",
    },
)


_CONDITION_BY_PHASE: Final = (
    "{'Succeeded': 'Complete', 'DeadLetter': 'Failed', 'Cancelled': 'Cancelled'}"
)

FINISHED_COMPLETION_TIME: Final = Rule(
    "finished.completion-time",
    "A job has a completionTime if, and only if, it is finished; durationSeconds only then.",
    {
        StatusWrite.CLAIM: "!has(now.completionTime) && !has(now.durationSeconds)",
        StatusWrite.PHASE_CHANGE: "has(now.completionTime) == finished"
        " && (finished || !has(now.durationSeconds))",
        StatusWrite.SAME_PHASE: f"{unchanged('completionTime')} && {unchanged('durationSeconds')}",
    },
)
FINISHED_CONDITION: Final = Rule(
    "finished.condition",
    "A finished job has exactly the condition of its phase (Complete, Failed, Cancelled), True; "
    "any other job has none.",
    {
        StatusWrite.CLAIM: "!has(now.conditions)",
        StatusWrite.PHASE_CHANGE: "!finished ? !has(now.conditions) : has(now.conditions)"
        " && now.conditions.size() == 1 && now.conditions[0].status == 'True'"
        f" && now.conditions[0].type == {_CONDITION_BY_PHASE}[now.phase]",
        StatusWrite.SAME_PHASE: unchanged("conditions"),
    },
)
FINISHED_FROZEN: Final = Rule(
    "finished.frozen",
    "The status of a finished job cannot be changed, except reruns.",
    {
        StatusWrite.SAME_PHASE: f"!finished || ({unchanged('message')} && "
        f"{unchanged('lastUpdateTime')})"
    },
)
RETRYING_DELAY: Final = Rule(
    "retrying.delay",
    "A job has retryDelaySeconds and nextAttemptTime if, and only if, it is Retrying; while it is, "
    "they stay.",
    {
        StatusWrite.CLAIM: "!has(now.retryDelaySeconds) && !has(now.nextAttemptTime)",
        StatusWrite.PHASE_CHANGE: "has(now.retryDelaySeconds) == (now.phase == 'Retrying')"
        " && has(now.nextAttemptTime) == (now.phase == 'Retrying')",
        StatusWrite.SAME_PHASE: f"{unchanged('retryDelaySeconds')} && "
        f"{unchanged('nextAttemptTime')}",
    },
)
STEADY_LAST_TRANSITION_TIME: Final = Rule(
    "steady.last-transition-time",
    "Each change of phase, and nothing else, sets lastTransitionTime.",
    {
        StatusWrite.CLAIM: "has(now.lastTransitionTime)",
        StatusWrite.PHASE_CHANGE: "has(now.lastTransitionTime)",
        StatusWrite.SAME_PHASE: unchanged("lastTransitionTime"),
    },
)
STEADY_ERROR: Final = Rule(
    "steady.error",
    "The error changes only as the job leaves a phase.",
    {StatusWrite.SAME_PHASE: unchanged("error")},
)
RESULT_BY_SUCCESS: Final = Rule(
    "result.by-success",
    "A job gets its result, or the reference to it, by going from Running to Succeeded; nothing "
    "changes it afterwards.",
    {
        StatusWrite.CLAIM: "!has(dyn(now).result) && !has(now.resultRef)",
        StatusWrite.PHASE_CHANGE: "now.phase == 'Succeeded' || !has(dyn(now).result) && "
        "!has(now.resultRef)",
        StatusWrite.SAME_PHASE: f"{unchanged_json('now', 'result')} && {unchanged('resultRef')}",
    },
)
RESULT_ONCE: Final = Rule(
    "result.once",
    "A job has a result or a reference to one, not both.",
    {StatusWrite.PHASE_CHANGE: "!has(dyn(now).result) || !has(now.resultRef)"},
)
RUNNING_PROGRESS: Final = Rule(
    "running.progress",
    "Progress changes only while the job runs, or as it leaves Running.",
    {
        StatusWrite.CLAIM: unchanged("progress"),
        StatusWrite.PHASE_CHANGE: f"was.phase == 'Running' || {unchanged('progress')}",
        StatusWrite.SAME_PHASE: f"was.phase == 'Running' || {unchanged('progress')}",
    },
)
RUNNING_CHECKPOINT: Final = Rule(
    "running.checkpoint",
    "The checkpoint changes only while the job runs, or as it leaves Running.",
    {
        StatusWrite.CLAIM: unchanged_json("now", "checkpoint"),
        StatusWrite.PHASE_CHANGE: "was.phase == 'Running' || "
        f"{unchanged_json('now', 'checkpoint')}",
        StatusWrite.SAME_PHASE: f"was.phase == 'Running' || {unchanged_json('now', 'checkpoint')}",
    },
)

_STEPS_UNCHANGED: Final = unchanged_json("now", "steps")
_STEPS_KEPT: Final = (
    "!has(dyn(was).steps) || (has(dyn(now).steps) && dyn(was).steps.all(key, "
    "key in dyn(now).steps && dyn(now).steps[key] == dyn(was).steps[key]))"
)

RUNNING_STEPS: Final = Rule(
    "running.steps",
    "Steps are only added, while the job runs; a step that is done is never changed or removed.",
    {
        StatusWrite.CLAIM: _STEPS_UNCHANGED,
        StatusWrite.PHASE_CHANGE: _STEPS_UNCHANGED,
        StatusWrite.SAME_PHASE: f"was.phase == 'Running' ? ({_STEPS_KEPT}) : ({_STEPS_UNCHANGED})",
    },
)

_WAITS_UNCHANGED: Final = unchanged_json("now", "waits")
_WAITS_KEPT: Final = (
    "!has(dyn(was).waits) || (has(dyn(now).waits) && dyn(was).waits.all(key, "
    "key in dyn(now).waits && dyn(now).waits[key] == dyn(was).waits[key]))"
)
_WAITS_KEPT_OR_MARKED: Final = (
    "!has(dyn(was).waits) || (has(dyn(now).waits) && dyn(was).waits.all(key, "
    "key in dyn(now).waits && dyn(now).waits[key].kind == dyn(was).waits[key].kind"
    " && dyn(now).waits[key].until == dyn(was).waits[key].until"
    " && (!has(dyn(was).waits[key].over) || has(dyn(now).waits[key].over))))"
)
_WAITS_MARKED: Final = (
    "has(dyn(was).waits) == has(dyn(now).waits) && (!has(dyn(was).waits)"
    " || dyn(now).waits.all(key, key in dyn(was).waits))"
    f" && ({_WAITS_KEPT_OR_MARKED})"
)
_SLEEPS_KEPT: Final = (
    "(!has(dyn(now).waits) || (has(dyn(was).waits) && dyn(now).waits.all(key, "
    "key in dyn(was).waits && dyn(now).waits[key] == dyn(was).waits[key])))"
    " && (!has(dyn(was).waits) || dyn(was).waits.all(key, dyn(was).waits[key].kind != 'Sleep'"
    " || (has(dyn(now).waits) && key in dyn(now).waits)))"
)

RUNNING_WAITS: Final = Rule(
    "running.waits",
    "Waits are only added, while the job runs or as it is parked; while it runs and as it is woken "
    "they are marked as over. Their ends are never changed; a redrive drops all but sleeps.",
    {
        StatusWrite.CLAIM: _WAITS_UNCHANGED,
        StatusWrite.PHASE_CHANGE: f"parked ? ({_WAITS_KEPT}) : woken ? ({_WAITS_MARKED}) : "
        f"redriven ? ({_SLEEPS_KEPT}) : ({_WAITS_UNCHANGED})",
        StatusWrite.SAME_PHASE: f"was.phase == 'Running' ? ({_WAITS_KEPT_OR_MARKED}) : "
        f"({_WAITS_UNCHANGED})",
    },
)

_NO_SIGNAL_TIMED_OUT: Final = (
    "!has(spec.signals) || !has(dyn(now).waits) || dyn(now).waits.all(key, "
    "!(key in spec.signals) || !has(dyn(now).waits[key].over)"
    " || dyn(now).waits[key].kind != 'Signal')"
)

SIGNAL_TIMEOUT: Final = Rule(
    "signal.timeout",
    "A wait for a signal times out only if the signal has not been sent.",
    {
        StatusWrite.PHASE_CHANGE: f"!(parked || woken) || ({_NO_SIGNAL_TIMED_OUT})",
        StatusWrite.SAME_PHASE: f"was.phase != 'Running' || ({_NO_SIGNAL_TIMED_OUT})",
    },
)
PARKED_WAITING: Final = Rule(
    "parked.waiting",
    "A job says in waiting what it is parked for from Running to Scheduled or Pending until its "
    "next change of phase, and at no other time; such a job, and no other, is queued for WaitOver.",
    {
        StatusWrite.CLAIM: "!has(now.waiting)",
        StatusWrite.PHASE_CHANGE: "has(now.waiting) == parked"
        f" && woken == ({_REASON} == '{Reason.WAIT_OVER}')",
        StatusWrite.SAME_PHASE: unchanged("waiting"),
    },
)
