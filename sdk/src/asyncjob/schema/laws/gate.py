"""What in the spec holds a job back, and what in it a move takes its ground from."""

from typing import Final

from asyncjob.schema.laws.expressions import same
from asyncjob.schema.laws.law import Law, Write

_REASON: Final = "now.?reason.orValue('')"
_CANCEL: Final = "spec.?cancel.orValue(false)"

SUSPENDED: Final = Law(
    "gate.suspend",
    "A job is not claimed while spec.suspend is true.",
    {Write.CLAIM: "!spec.?suspend.orValue(false)"},
)
CANCELLED: Final = Law(
    "gate.cancel",
    "A job is not claimed once spec.cancel is true.",
    {Write.CLAIM: f"!{_CANCEL}"},
)
ADMITTED: Final = Law(
    "gate.admitted",
    "A job with notBefore, notAfter, dependsOn or deduplicationId is claimed only once it is "
    "admitted.",
    {
        Write.CLAIM: "was.?admitted.orValue(false) || !(has(spec.notBefore) || has(spec.notAfter)"
        " || has(spec.deduplicationId) || spec.?dependsOn.orValue([]).size() > 0)",
    },
)
CANCEL_WISHED: Final = Law(
    "ground.cancel",
    "A job is cancelled on request, or dismissed, only if spec.cancel is true.",
    {Write.MOVE: f"!({_REASON} in ['CancelRequested', 'Dismissed']) || {_CANCEL}"},
)
DEADLINE: Final = Law(
    "ground.deadline",
    "A job is cancelled for its deadline only if it has spec.notAfter.",
    {Write.MOVE: f"{_REASON} != 'DeadlineExceeded' || has(spec.notAfter)"},
)
DUPLICATE: Final = Law(
    "ground.duplicate",
    "A job is cancelled as a duplicate only if it has spec.deduplicationId.",
    {Write.MOVE: f"{_REASON} != 'Duplicate' || has(spec.deduplicationId)"},
)
SCHEDULED: Final = Law(
    "ground.not-before",
    "A job becomes Scheduled only if it has spec.notBefore.",
    {Write.MOVE: "now.phase != 'Scheduled' || has(spec.notBefore)"},
)
REDRIVES: Final = Law(
    "ground.redrive",
    "A redrive sets redrives to spec.redrive, which has to be more than it was; nothing else "
    "changes redrives.",
    {
        Write.CLAIM: same("redrives"),
        Write.MOVE: "redriven ? now.redrives == spec.?redrive.orValue(0)"
        f" && now.redrives > was.redrives : {same('redrives')}",
        Write.STAY: same("redrives"),
    },
)
_ACKNOWLEDGED: Final = (
    f"{same('reruns')} || (now.reruns > was.reruns && now.reruns == spec.?rerun.orValue(0))"
)
RERUNS: Final = Law(
    "ground.rerun",
    "reruns changes only upwards, and only to spec.rerun.",
    {Write.CLAIM: _ACKNOWLEDGED, Write.MOVE: _ACKNOWLEDGED, Write.STAY: _ACKNOWLEDGED},
)
