"""What in the spec holds a job back, and what in it a move takes its ground from."""

from typing import Final

from asyncjob.schema.laws.expressions import unchanged
from asyncjob.schema.laws.law import Rule, StatusWrite

_REASON: Final = "now.?reason.orValue('')"
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
GROUND_CANCEL: Final = Rule(
    "ground.cancel",
    "A job is cancelled on request, or dismissed, only if spec.cancel is true.",
    {StatusWrite.PHASE_CHANGE: f"!({_REASON} in ['CancelRequested', 'Dismissed']) || {_CANCEL}"},
)
GROUND_DEADLINE: Final = Rule(
    "ground.deadline",
    "A job is cancelled for its deadline only if it has spec.notAfter.",
    {StatusWrite.PHASE_CHANGE: f"{_REASON} != 'DeadlineExceeded' || has(spec.notAfter)"},
)
GROUND_DUPLICATE: Final = Rule(
    "ground.duplicate",
    "A job is cancelled as a duplicate only if it has spec.deduplicationId.",
    {StatusWrite.PHASE_CHANGE: f"{_REASON} != 'Duplicate' || has(spec.deduplicationId)"},
)
GROUND_NOT_BEFORE: Final = Rule(
    "ground.not-before",
    "A job becomes Scheduled only if it has spec.notBefore.",
    {StatusWrite.PHASE_CHANGE: "now.phase != 'Scheduled' || has(spec.notBefore)"},
)
GROUND_REDRIVE: Final = Rule(
    "ground.redrive",
    "A redrive sets redrives to spec.redrive, which has to be more than it was; nothing else "
    "changes redrives.",
    {
        StatusWrite.CLAIM: unchanged("redrives"),
        StatusWrite.PHASE_CHANGE: "redriven ? now.redrives == spec.?redrive.orValue(0)"
        f" && now.redrives > was.redrives : {unchanged('redrives')}",
        StatusWrite.SAME_PHASE: unchanged("redrives"),
    },
)
_ACKNOWLEDGED: Final = (
    f"{unchanged('reruns')} || (now.reruns > was.reruns && now.reruns == spec.?rerun.orValue(0))"
)
GROUND_RERUN: Final = Rule(
    "ground.rerun",
    "reruns changes only upwards, and only to spec.rerun.",
    {
        StatusWrite.CLAIM: _ACKNOWLEDGED,
        StatusWrite.PHASE_CHANGE: _ACKNOWLEDGED,
        StatusWrite.SAME_PHASE: _ACKNOWLEDGED,
    },
)
