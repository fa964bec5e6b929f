"""Rules of phase changes: which phase may follow which, for which reasons, and what they record.

The pairs and reasons come from the transition table. The `gate` rules say which fields of the spec
hold a job back, the `precondition` rules which field a change of phase requires. Each change is
appended to the history, which is never rewritten.
"""

from typing import Final

from asyncjob.lifecycle.phase_change import MAX_HISTORY_ENTRIES
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.transitions import TRANSITIONS, Transition, targets_of
from asyncjob.rules.rule import (
    Rule,
    StatusWrite,
    cel_list,
    cel_string,
    count,
    grew,
    unchanged,
)


def _phase_pair(transition: Transition) -> str:
    return f"{transition.source}>{transition.target}"


def _sorted_reasons(transition: Transition) -> list[str]:
    return sorted(transition.reasons) or [""]


def _legal_targets(phase: Phase) -> str:
    targets = targets_of(phase)
    return f"from {phase} only to {', '.join(targets)}" if targets else f"{phase} is final"


_PHASE_PAIRS: Final = cel_list(_phase_pair(transition) for transition in TRANSITIONS)
_LEGAL_TARGETS: Final = "".join(
    f"oldSelf == {cel_string(phase)} ? {cel_string(_legal_targets(phase))} : " for phase in Phase
)

TRANSITION_PAIR: Final = Rule(
    "transition.pair",
    "The phase can only change as the table of transitions allows.",
    # `self` is the phase: reading a field, of the status as `self`, is what costs in a CRD.
    f"self == oldSelf || (oldSelf + '>' + self) in {_PHASE_PAIRS}",
    f"'phase cannot go from ' + oldSelf + ' to ' + self + ': ' + ({_LEGAL_TARGETS}'')",
)

_PHASE_CHANGE: Final = "(was.phase + '>' + now.phase)"
_REASON: Final = "now.?reason.orValue('')"
_PHASE_CHANGES_WITH_REASON: Final = cel_list(
    f"{_phase_pair(transition)}:{reason}"
    for transition in TRANSITIONS
    for reason in _sorted_reasons(transition)
)
_PENDING_REASONS: Final = cel_list(
    sorted(
        {
            reason
            for transition in TRANSITIONS
            if transition.target is Phase.PENDING and transition.source is not Phase.RUNNING
            for reason in transition.reasons
        }
    )
)

TRANSITION_REASON: Final = Rule(
    "transition.reason",
    "The reason must be one that the transition allows, and is kept until the next change of "
    "phase. A Running or Succeeded job has none; that of a Pending job that is not parked can "
    "change.",
    {
        StatusWrite.CLAIM: "!has(now.reason)",
        StatusWrite.PHASE_CHANGE: f"!({_PHASE_CHANGE} in {_PHASE_PAIRS}) || ({_PHASE_CHANGE} + "
        f"':' + {_REASON}) in {_PHASE_CHANGES_WITH_REASON}",
        StatusWrite.SAME_PHASE: f"{unchanged('reason')} || (now.phase == 'Pending' && "
        f"!has(was.waiting) && {_REASON} in {_PENDING_REASONS})",
    },
    f"'reason ' + {_REASON} + ' does not lead from ' + was.phase + ' to ' + now.phase",
)


_CANCEL: Final = "spec.?cancel.orValue(false)"

GATE_SUSPEND: Final = Rule(
    "gate.suspend",
    "A job is not claimed while spec.suspend is true.",
    {StatusWrite.CLAIM: "!spec.?suspend.orValue(false)"},
)
GATE_CANCEL: Final = Rule(
    "gate.cancel",
    "A job is not claimed once spec.cancel is true.",
    {StatusWrite.CLAIM: f"!{_CANCEL}"},
)
GATE_ADMITTED: Final = Rule(
    "gate.admitted",
    "A job with notBefore, notAfter, dependsOn or deduplicationId is claimed only once it is "
    "admitted.",
    {
        StatusWrite.CLAIM: "was.?admitted.orValue(false) || !(has(spec.notBefore) || "
        "has(spec.notAfter)"
        " || has(spec.deduplicationId) || spec.?dependsOn.orValue([]).size() > 0)",
    },
)
PRECONDITION_CANCEL: Final = Rule(
    "precondition.cancel",
    "A job is cancelled on request, or dismissed, only if spec.cancel is true.",
    {StatusWrite.PHASE_CHANGE: f"!({_REASON} in ['CancelRequested', 'Dismissed']) || {_CANCEL}"},
)
PRECONDITION_DEADLINE: Final = Rule(
    "precondition.deadline",
    "A job is cancelled for its deadline only if it has spec.deadlineSeconds or, unless it is "
    "Running, spec.notAfter.",
    {
        StatusWrite.PHASE_CHANGE: f"{_REASON} != 'DeadlineExceeded' || has(spec.deadlineSeconds)"
        " || (has(spec.notAfter) && was.phase != 'Running')"
    },
)
PRECONDITION_DUPLICATE: Final = Rule(
    "precondition.duplicate",
    "A job is cancelled as a duplicate only if it has spec.deduplicationId.",
    {StatusWrite.PHASE_CHANGE: f"{_REASON} != 'Duplicate' || has(spec.deduplicationId)"},
)
PRECONDITION_NOT_BEFORE: Final = Rule(
    "precondition.not-before",
    "A job becomes Scheduled only if it has spec.notBefore, or as it is parked.",
    {StatusWrite.PHASE_CHANGE: "now.phase != 'Scheduled' || has(spec.notBefore) || parked"},
)
PRECONDITION_REDRIVE: Final = Rule(
    "precondition.redrive",
    "A redrive sets redrives to spec.redrive, which must be greater than before; nothing else "
    "changes redrives.",
    {
        StatusWrite.CLAIM: unchanged("redrives"),
        StatusWrite.PHASE_CHANGE: f"redriven ? {count('redrives')} == spec.?redrive.orValue(0)"
        f" && {grew('redrives')} : {unchanged('redrives')}",
        StatusWrite.SAME_PHASE: unchanged("redrives"),
    },
)
_ACKNOWLEDGED: Final = (
    f"{unchanged('reruns')} || ({grew('reruns')} && {count('reruns')} == spec.?rerun.orValue(0))"
)
PRECONDITION_RERUN: Final = Rule(
    "precondition.rerun",
    "reruns can only increase, and only to spec.rerun.",
    {
        StatusWrite.CLAIM: _ACKNOWLEDGED,
        StatusWrite.PHASE_CHANGE: _ACKNOWLEDGED,
        StatusWrite.SAME_PHASE: _ACKNOWLEDGED,
    },
)


_OLD_HISTORY: Final = "was.?history.orValue([])"
_NEW_HISTORY: Final = "now.?history.orValue([])"
_DROPPED_ENTRIES: Final = f"({_OLD_HISTORY}.size() == {MAX_HISTORY_ENTRIES} ? 1 : 0)"
_INDEXES: Final = f"[{', '.join(str(place) for place in range(MAX_HISTORY_ENTRIES))}]"

HISTORY_GROWS: Final = Rule(
    "history.grows",
    "Each change of phase except a claim, a park and the promotion that ends it adds one entry "
    f"for the new phase; the newest {MAX_HISTORY_ENTRIES} are kept.",
    {
        StatusWrite.CLAIM: unchanged("history"),
        StatusWrite.PHASE_CHANGE: f"parked || woken ? {unchanged('history')} : "
        f"{_NEW_HISTORY}.size() == {_OLD_HISTORY}.size() + 1 - {_DROPPED_ENTRIES}"
        f" && {_NEW_HISTORY}[{_NEW_HISTORY}.size() - 1].phase == now.phase",
        StatusWrite.SAME_PHASE: unchanged("history"),
    },
)
HISTORY_KEPT: Final = Rule(
    "history.kept",
    "Entries of the history cannot be changed.",
    {
        StatusWrite.PHASE_CHANGE: f"parked || woken || {_OLD_HISTORY}.size() == 0"
        f" || {_INDEXES}.all(i, i >= {_OLD_HISTORY}.size() - {_DROPPED_ENTRIES}"
        f" || i >= {_NEW_HISTORY}.size() || {_NEW_HISTORY}[i] == {_OLD_HISTORY}[i + "
        f"{_DROPPED_ENTRIES}])",
    },
)
HISTORY_OMITTED: Final = Rule(
    "history.omitted",
    "historyOmitted counts the entries that are no longer kept.",
    {
        StatusWrite.CLAIM: unchanged("historyOmitted"),
        StatusWrite.PHASE_CHANGE: "now.?historyOmitted.orValue(0) == "
        f"was.?historyOmitted.orValue(0) + (parked || woken ? 0 : {_DROPPED_ENTRIES})",
        StatusWrite.SAME_PHASE: unchanged("historyOmitted"),
    },
)
