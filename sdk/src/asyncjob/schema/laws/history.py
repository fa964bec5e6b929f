"""The history of a job: appended to with each change of phase, and never rewritten."""

from typing import Final

from asyncjob.lifecycle.move import MAX_HISTORY_ENTRIES
from asyncjob.schema.laws.expressions import unchanged
from asyncjob.schema.laws.law import Rule, StatusWrite

_OLD_HISTORY: Final = "was.?history.orValue([])"
_NEW_HISTORY: Final = "now.?history.orValue([])"
_DROPPED_ENTRIES: Final = f"({_OLD_HISTORY}.size() == {MAX_HISTORY_ENTRIES} ? 1 : 0)"
_INDEXES: Final = f"[{', '.join(str(place) for place in range(MAX_HISTORY_ENTRIES))}]"

HISTORY_GROWS: Final = Rule(
    "history.grows",
    "Each change of phase but a claim adds one entry, for the new phase; the newest "
    f"{MAX_HISTORY_ENTRIES} "
    "are kept.",
    {
        StatusWrite.CLAIM: unchanged("history"),
        StatusWrite.PHASE_CHANGE: f"{_NEW_HISTORY}.size() == {_OLD_HISTORY}.size() + 1 - "
        f"{_DROPPED_ENTRIES}"
        f" && {_NEW_HISTORY}[{_NEW_HISTORY}.size() - 1].phase == now.phase",
        StatusWrite.SAME_PHASE: unchanged("history"),
    },
)
HISTORY_KEPT: Final = Rule(
    "history.kept",
    "Entries of the history are never changed.",
    {
        StatusWrite.PHASE_CHANGE: f"{_OLD_HISTORY}.size() == 0 || {_INDEXES}.all(i, i >= "
        f"{_OLD_HISTORY}.size() - {_DROPPED_ENTRIES}"
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
        f"was.?historyOmitted.orValue(0) + {_DROPPED_ENTRIES}",
        StatusWrite.SAME_PHASE: unchanged("historyOmitted"),
    },
)
