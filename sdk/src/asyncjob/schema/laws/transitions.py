"""Which phase may follow which, and for which reasons: made from the table of transitions."""

from typing import Final

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.transitions import EDGES, Edge, targets_of
from asyncjob.schema.laws.expressions import one_of, quote, same
from asyncjob.schema.laws.law import Law, Write


def _pair(edge: Edge) -> str:
    return f"{edge.source}>{edge.target}"


def _reasons(edge: Edge) -> list[str]:
    return sorted(edge.reasons) or [""]


def _way_out(phase: Phase) -> str:
    targets = targets_of(phase)
    return f"from {phase} only to {', '.join(targets)}" if targets else f"{phase} is final"


_PAIRS: Final = one_of(_pair(edge) for edge in EDGES)
_WAYS_OUT: Final = "".join(
    f"oldSelf == {quote(phase)} ? {quote(_way_out(phase))} : " for phase in Phase
)

PAIR: Final = Law(
    "transition.pair",
    "The phase goes only along an edge of the table of transitions.",
    # `self` is the phase: reading a field, of the status as `self`, is what costs in a CRD.
    f"self == oldSelf || (oldSelf + '>' + self) in {_PAIRS}",
    f"'phase cannot go from ' + oldSelf + ' to ' + self + ': ' + ({_WAYS_OUT}'')",
)

_MOVE: Final = "(was.phase + '>' + now.phase)"
_REASON: Final = "now.?reason.orValue('')"
_REASONED: Final = one_of(f"{_pair(edge)}:{reason}" for edge in EDGES for reason in _reasons(edge))
_PENDING: Final = one_of(
    sorted({reason for edge in EDGES if edge.target is Phase.PENDING for reason in edge.reasons})
)

REASON: Final = Law(
    "transition.reason",
    "The reason is one of the edge's reasons, and stays until the next change of phase; a job that "
    "runs or has succeeded has none, and a Pending one may come to wait for something else.",
    {
        Write.CLAIM: "!has(now.reason)",
        Write.MOVE: f"!({_MOVE} in {_PAIRS}) || ({_MOVE} + ':' + {_REASON}) in {_REASONED}",
        Write.STAY: f"{same('reason')} || (now.phase == 'Pending' && {_REASON} in {_PENDING})",
    },
    f"'reason ' + {_REASON} + ' does not lead from ' + was.phase + ' to ' + now.phase",
)
