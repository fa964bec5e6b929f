"""Policies of a job: its life cycle, who may write its status, and what of its spec may change.

What holder and operator may write follows from the transition table. A condition lets the holder's
own writes through first, so that a worker costs no call to the authorizer. It does so only for an
account with a worker's name. Of any other account the authorizer is asked whether it may `operate`:
otherwise an operator's pod could claim jobs in its own name and set them to Succeeded.

Only the operator may change `reruns`, even while a worker holds the job: a worker that did could
make a requested rerun disappear. `redrives` and `admitted` need no rule here, because no write of a
holder may change them: see `precondition.redrive` and `claim.admitted`.
"""

from typing import Final

from asyncjob.lifecycle.transitions import TRANSITIONS, Actor
from asyncjob.names import CRON_JOBS, GROUP, JOBS, VERSION
from asyncjob.rules import claim, job_spec, outcome, transitions
from asyncjob.rules.policy import (
    IS_WORKER,
    MAY_OPERATE,
    REQUEST_POD,
    REQUEST_POD_UID,
    AdmissionPolicy,
    PolicyTarget,
)
from asyncjob.rules.rule import Rule, cel_and, cel_list, unchanged, unchanged_json

LIFECYCLE_POLICY: Final = AdmissionPolicy(
    name=f"lifecycle.{GROUP}",
    title="Which changes of a job's status are valid.",
    targets=(PolicyTarget(GROUP, VERSION, (f"{JOBS}/status",)),),
    operations=("UPDATE",),
    checks_rules_first=True,
    rules=(
        transitions.TRANSITION_REASON,
        claim.CLAIM_ATTEMPT,
        claim.CLAIM_ID,
        claim.CLAIM_START_TIME,
        claim.CLAIM_FIRST_START_TIME,
        claim.CLAIM_ADMITTED,
        transitions.GATE_SUSPEND,
        transitions.GATE_CANCEL,
        transitions.GATE_ADMITTED,
        claim.CLAIM_EFFECTIVE,
        claim.EFFECTIVE_OBEYS_SPEC,
        claim.EFFECTIVE_OBEYS_RETRY_POLICY,
        claim.LEASE_IFF_RUNNING,
        claim.LEASE_STARTS_UNRENEWED,
        claim.LEASE_DURATION,
        claim.LEASE_HELD,
        claim.LEASE_RENEWALS_GROW,
        outcome.BUDGET_RETRIES,
        outcome.BUDGET_CRASHES,
        outcome.BUDGET_RELEASES,
        outcome.BUDGET_PARKS,
        outcome.BUDGET_RETRIES_LEFT,
        outcome.BUDGET_REQUEUE_COUNTED,
        outcome.BUDGET_PARK_COUNTED,
        outcome.BUDGET_SPENT,
        outcome.BUDGET_BY_REASON,
        transitions.PRECONDITION_CANCEL,
        transitions.PRECONDITION_DEADLINE,
        transitions.PRECONDITION_DUPLICATE,
        transitions.PRECONDITION_NOT_BEFORE,
        transitions.PRECONDITION_REDRIVE,
        transitions.PRECONDITION_RERUN,
        outcome.FINISHED_COMPLETION_TIME,
        outcome.FINISHED_CONDITION,
        outcome.FINISHED_FROZEN,
        outcome.RETRYING_DELAY,
        outcome.STEADY_LAST_TRANSITION_TIME,
        outcome.STEADY_ERROR,
        outcome.RESULT_BY_SUCCESS,
        outcome.RESULT_ONCE,
        outcome.RUNNING_PROGRESS,
        outcome.RUNNING_CHECKPOINT,
        outcome.RUNNING_STEPS,
        outcome.RUNNING_WAITS,
        outcome.PARKED_WAITING,
        outcome.SIGNAL_TIMEOUT,
        transitions.HISTORY_GROWS,
        transitions.HISTORY_KEPT,
        transitions.HISTORY_OMITTED,
    ),
)


# `was`, `now`, `claimed` and the like stand for parts of the request: `expand_names` in rule.py.
# How the pieces below work together, for a job that pod worker-0 runs and that becomes Retrying:
#
#   sent by                     reason         mine   operates  holds  result
#   worker-0                    HandlerFailed  true   false     true   accepted
#   worker-0                    LeaseExpired   true   false     true   refused: the operator's alone
#   the operator                LeaseExpired   false  true      false  accepted
#   the operator                HandlerFailed  false  true      false  refused: a holder's alone
#   worker-1                    HandlerFailed  false  false     false  refused: may write nothing
#   worker-0, may also operate  HandlerFailed  true   true      false  refused: counts as no holder
#
# The change of phase is 'Running>Retrying:HandlerFailed', which is in `_HOLDER_ONLY_CHANGES`, or
# 'Running>Retrying:LeaseExpired', which is in `_OPERATOR_ONLY_CHANGES`. With ExecutionTimeout it
# would be in neither, because the table gives that to both. The first write, from an account with
# a worker's name, makes the condition `not-the-holders-own` false: nothing else is evaluated then.

_HOLDER: Final = "(was.phase == 'Running' ? was.lease : now.lease)"
_IS_HOLDER: Final = (
    "(was.phase == 'Running' ? has(was.lease) : claimed && has(now.lease))"
    f" && {REQUEST_POD} != '' && {_HOLDER}.holder == {REQUEST_POD}"
    f" && {REQUEST_POD_UID} != '' && {_HOLDER}.holderUID == {REQUEST_POD_UID}"
)
_PHASE_CHANGE: Final = "(was.phase + '>' + now.phase + ':' + now.?reason.orValue(''))"


def _phase_changes_of(actor: Actor) -> list[str]:
    """Return the changes of phase that are an actor's, each with a reason; empty for none."""
    return [
        f"{transition.source}>{transition.target}:{reason}"
        for transition in TRANSITIONS
        if actor in transition.reasons_by_actor
        for reason in sorted(map(str, transition.reasons_by_actor[actor])) or [""]
    ]


_HOLDER_CHANGES: Final = _phase_changes_of(Actor.WORKER)
_OPERATOR_CHANGES: Final = _phase_changes_of(Actor.OPERATOR)
_HOLDER_PHASE_PAIRS: Final = {step.split(":")[0] for step in _HOLDER_CHANGES}

# Which steps there are at all is what `transition.pair` and `transition.reason` are about.
_HOLDER_ONLY_CHANGES: Final = cel_list(
    step for step in _HOLDER_CHANGES if step not in _OPERATOR_CHANGES
)
_OPERATOR_ONLY_CHANGES: Final = cel_list(
    # On all other transitions of the operator's nobody holds the job.
    step
    for step in _OPERATOR_CHANGES
    if step not in _HOLDER_CHANGES and step.split(":")[0] in _HOLDER_PHASE_PAIRS
)

# A claim, a heartbeat and a success have no reason: the commonest writes cost one look more.
_IS_HOLDER_CHANGE: Final = f"(!has(now.reason) || !({_PHASE_CHANGE} in {_OPERATOR_ONLY_CHANGES}))"

# Every field but one, those that are added some day included.
_ONLY_RERUNS_CHANGED: Final = (
    "dyn(now).all(key, key == 'reruns' || dyn(was)[?key] == optional.of(dyn(now)[key]))"
    " && dyn(was).all(key, key == 'reruns' || key in dyn(now))"
)

# What the next attempt goes on from: with it, taking a job away could decide how that one ends.
_PROGRESS_UNCHANGED: Final = cel_and((unchanged("progress"), unchanged_json("now", "checkpoint")))

_OWNER_HOLDER: Final = Rule(
    "owner.holder",
    "The status of a job can be written only by the pod that holds its lease or acquires it with "
    "this claim, or with the permission `operate` on asyncjobs.",
    "variables.mine || variables.operates",
    "(was.phase == 'Running' ? 'the job is held by pod ' + was.lease.holder + ' ('"
    " + was.lease.holderUID + ')' : claimed ? 'the claim is in the name of pod '"
    " + now.lease.holder + ' (' + now.lease.holderUID + ')'"
    " : 'nobody holds the job, it is ' + was.phase) + '; this request comes from '"
    f" + ({REQUEST_POD} == '' ? 'no pod' : 'pod ' + {REQUEST_POD} + ' (' + {REQUEST_POD_UID} + ')')"
    " + ', and ' + request.userInfo.username + ' may not operate on asyncjobs'",
    is_forbidden=True,
)
# A message is evaluated without the authorizer: it cannot ask who `operates`, nor who `holds`.
_OWNER_TRANSITION: Final = Rule(
    "owner.transition",
    "The phase can be changed only by the actor and for the reasons of the table of transitions: "
    "with the permission `operate` a caller can neither claim a job nor set it to Succeeded, and a "
    "holder cannot report its own lease as expired.",
    f"!moved || (variables.holds ? {_IS_HOLDER_CHANGE} : !({_PHASE_CHANGE} in "
    f"{_HOLDER_ONLY_CHANGES}))",
    "'from ' + was.phase + ' to ' + now.phase + (has(now.reason) ? ' for ' + now.reason : '')"
    f" + ' is not for ' + ({_PHASE_CHANGE} in {_OPERATOR_ONLY_CHANGES} ? 'the holder of the job'"
    " : request.userInfo.username + (variables.mine ? ', which may operate on asyncjobs and so"
    " holds none: give workers an account without that verb' : ', which holds no job'))",
    is_forbidden=True,
)
_OWNER_RUNNING: Final = Rule(
    "owner.running",
    "While a job runs, only its holder can change its status; with the permission `operate` a "
    "caller can acknowledge a rerun in reruns, and end the attempt without changing progress and "
    "checkpoint.",
    f"was.phase != 'Running' || variables.holds || (moved ? {_PROGRESS_UNCHANGED} : "
    f"{_ONLY_RERUNS_CHANGED})",
    "'the job is held by pod ' + was.lease.holder + ' (' + was.lease.holderUID"
    " + '): ' + (moved ? 'others cannot change progress and checkpoint when they end the attempt'"
    " : 'while it runs others can change only reruns in its status')",
    is_forbidden=True,
)
_OWNER_RERUN: Final = Rule(
    "owner.rerun",
    "reruns can be changed only with the permission `operate` on asyncjobs, not by the holder.",
    f"{unchanged('reruns')} || variables.operates",
    is_forbidden=True,
)

OWNERSHIP_POLICY: Final = AdmissionPolicy(
    name=f"ownership.{GROUP}",
    title="Who may write a job's status.",
    targets=(PolicyTarget(GROUP, VERSION, (f"{JOBS}/status",)),),
    operations=("UPDATE",),
    conditions={
        # Claims, heartbeats and outcomes of workers: no rule of this policy is evaluated for them.
        "not-the-holders-own": f"!({_IS_HOLDER} && {unchanged('reruns')} && {_IS_HOLDER_CHANGE} "
        f"&& {IS_WORKER})"
    },
    variables={
        "mine": _IS_HOLDER,
        "operates": MAY_OPERATE,
        "holds": "variables.mine && !variables.operates",
    },
    rules=(_OWNER_HOLDER, _OWNER_TRANSITION, _OWNER_RUNNING, _OWNER_RERUN),
)


SPEC_POLICY: Final = AdmissionPolicy(
    name=f"spec.{GROUP}",
    title="Which changes of a job's spec are valid.",
    targets=(PolicyTarget(GROUP, VERSION, (JOBS,)),),
    operations=("UPDATE",),
    rules=(
        *job_spec.SPEC_FIXED_RULES,
        job_spec.CONTROL_CANCEL_LATCHES,
        job_spec.CONTROL_CANCEL_TOO_LATE,
        job_spec.CONTROL_REDRIVE_GROWS,
        job_spec.CONTROL_REDRIVE_DEAD_LETTER,
        job_spec.CONTROL_RERUN_GROWS,
        job_spec.CONTROL_PRIORITY,
        job_spec.SIGNAL_ONCE,
        job_spec.SIGNAL_UNFINISHED,
        job_spec.SIGNAL_IN_TIME,
    ),
)

CREATION_POLICY: Final = AdmissionPolicy(
    name=f"creation.{GROUP}",
    title="What a new job and the template of a cron job must not contain.",
    targets=(PolicyTarget(GROUP, VERSION, (JOBS, CRON_JOBS)),),
    operations=("CREATE", "UPDATE"),
    conditions={
        "creates": "request.operation == 'CREATE' || object.kind == 'AsyncCronJob'",
        # A plain job has none of these, and every validation costs it several conditions.
        "may-be-wrong": "object.kind == 'AsyncCronJob' || has(dyn(spec).redrive)"
        " || has(dyn(spec).rerun) || has(dyn(spec).dependsOn) || has(dyn(spec).signals)",
    },
    variables={
        "template": "object.kind == 'AsyncJob' ? spec : spec.jobTemplate.spec",
    },
    rules=(
        job_spec.CONTROL_NOT_AT_CREATION,
        job_spec.SPEC_DEPENDS_ON_OTHERS,
        job_spec.SIGNAL_NOT_AT_CREATION,
    ),  # a further one needs its field in the condition
)
