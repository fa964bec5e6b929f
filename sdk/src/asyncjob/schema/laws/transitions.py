"""Which phase may follow which, and for which reasons: made from the table of transitions."""

from typing import Final

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.transitions import TRANSITIONS, Transition, targets_of
from asyncjob.schema.laws.expressions import cel_list, cel_string, unchanged
from asyncjob.schema.laws.law import Rule, StatusWrite


def _phase_pair(edge: Transition) -> str:
    return f"{edge.source}>{edge.target}"


def _edge_reasons(edge: Transition) -> list[str]:
    return sorted(edge.reasons) or [""]


def _legal_targets(phase: Phase) -> str:
    targets = targets_of(phase)
    return f"from {phase} only to {', '.join(targets)}" if targets else f"{phase} is final"


_PHASE_PAIRS: Final = cel_list(_phase_pair(edge) for edge in TRANSITIONS)
_LEGAL_TARGETS: Final = "".join(
    f"oldSelf == {cel_string(phase)} ? {cel_string(_legal_targets(phase))} : " for phase in Phase
)

TRANSITION_PAIR: Final = Rule(
    "transition.pair",
    "The phase goes only along an edge of the table of transitions.",
    # `self` is the phase: reading a field, of the status as `self`, is what costs in a CRD.
    f"self == oldSelf || (oldSelf + '>' + self) in {_PHASE_PAIRS}",
    f"'phase cannot go from ' + oldSelf + ' to ' + self + ': ' + ({_LEGAL_TARGETS}'')",
)

_PHASE_CHANGE: Final = "(was.phase + '>' + now.phase)"
_REASON: Final = "now.?reason.orValue('')"
_PHASE_CHANGES_WITH_REASON: Final = cel_list(
    f"{_phase_pair(edge)}:{reason}" for edge in TRANSITIONS for reason in _edge_reasons(edge)
)
_PENDING_REASONS: Final = cel_list(
    sorted(
        {reason for edge in TRANSITIONS if edge.target is Phase.PENDING for reason in edge.reasons}
    )
)

TRANSITION_REASON: Final = Rule(
    "transition.reason",
    "The reason is one of the edge's reasons, and stays until the next change of phase; a job that "
    "runs or has succeeded has none, and a Pending one may come to wait for something else.",
    {
        StatusWrite.CLAIM: "!has(now.reason)",
        StatusWrite.PHASE_CHANGE: f"!({_PHASE_CHANGE} in {_PHASE_PAIRS}) || ({_PHASE_CHANGE} + "
        f"':' + {_REASON}) in {_PHASE_CHANGES_WITH_REASON}",
        StatusWrite.SAME_PHASE: f"{unchanged('reason')} || (now.phase == 'Pending' && {_REASON} "
        f"in {_PENDING_REASONS})",
    },
    f"'reason ' + {_REASON} + ' does not lead from ' + was.phase + ' to ' + now.phase",
)
