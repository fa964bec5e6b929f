"""The history of a job: appended to with each change of phase, and never rewritten."""

from typing import Final

from asyncjob.lifecycle.move import MAX_HISTORY
from asyncjob.schema.laws.expressions import same
from asyncjob.schema.laws.law import Law, Write

_OLD: Final = "was.?history.orValue([])"
_NEW: Final = "now.?history.orValue([])"
_ROLLS: Final = f"({_OLD}.size() == {MAX_HISTORY} ? 1 : 0)"
_PLACES: Final = f"[{', '.join(str(place) for place in range(MAX_HISTORY))}]"

GROWS: Final = Law(
    "history.grows",
    f"Each change of phase but a claim adds one entry, for the new phase; the newest {MAX_HISTORY} "
    "are kept.",
    {
        Write.CLAIM: same("history"),
        Write.MOVE: f"{_NEW}.size() == {_OLD}.size() + 1 - {_ROLLS}"
        f" && {_NEW}[{_NEW}.size() - 1].phase == now.phase",
        Write.STAY: same("history"),
    },
)
KEPT: Final = Law(
    "history.kept",
    "Entries of the history are never changed.",
    {
        Write.MOVE: f"{_OLD}.size() == 0 || {_PLACES}.all(i, i >= {_OLD}.size() - {_ROLLS}"
        f" || i >= {_NEW}.size() || {_NEW}[i] == {_OLD}[i + {_ROLLS}])",
    },
)
OMITTED: Final = Law(
    "history.omitted",
    "historyOmitted counts the entries that are no longer kept.",
    {
        Write.CLAIM: same("historyOmitted"),
        Write.MOVE: f"now.?historyOmitted.orValue(0) == was.?historyOmitted.orValue(0) + {_ROLLS}",
        Write.STAY: same("historyOmitted"),
    },
)
