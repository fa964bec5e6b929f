"""The history of a simulation, judged in the end as users judge theirs: by `asyncjob audit check`.

So the two sets of rules are held against each other: what the audit finds in a simulated history is
an error of the product or of the audit, and what it does not find in a broken one may be a gap.
"""

from datetime import UTC, datetime
from typing import Any, Final

from asyncjob.audit.checker import CheckOptions, HistoryChecker
from asyncjob.audit.history_file import HistoryLine
from asyncjob.audit.recorded_object import status_written_at
from asyncjob.audit.retention_rules import RetentionFloors
from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.names import ARRAYS, CRON_JOBS, JOBS, QUEUES
from asyncjob_simulation.apiserver.storage import Change
from asyncjob_simulation.cluster import NAMESPACE

RECORDED: Final = (JOBS, QUEUES, CRON_JOBS, ARRAYS)
CLOCK_TOLERANCE: Final = 7.0


class History:
    """All versions of what is recorded of one simulation, as a recorder writes them."""

    def __init__(self, began: float) -> None:
        self._lines: list[JsonObject] = []
        self._add(HistoryLine.START, began, namespace=NAMESPACE, contents="whole")
        for resource in RECORDED:
            self._add(HistoryLine.LIST, began, resource=resource)
            self._add(HistoryLine.LIST_END, began, resource=resource)

    def _add(self, line: HistoryLine, at: float, **fields: Any) -> None:
        self._lines.append({"line": line.value, "time": _text(at), **fields})

    def take(self, resource: str, change: Change) -> None:
        """Record a change."""
        obj, event = change.new, "MODIFIED" if change.old else "ADDED"
        if obj is None:
            obj, event = change.old or {}, "DELETED"
        written = status_written_at(obj)
        fields = {"written": written} if written else {}
        self._add(
            HistoryLine.VERSION, change.time, resource=resource, event=event, object=obj, **fields
        )

    def violations(self, ended: float) -> list[tuple[str, str, str]]:
        """Return rule, object and words of what the audit finds wrong."""
        self._add(HistoryLine.END, ended)
        options = CheckOptions(CLOCK_TOLERANCE, RetentionFloors())
        report = HistoryChecker(options).check(self._lines)
        return [(one.rule.id, one.subject.name, one.message) for one in report.violations]


def _text(at: float) -> str:
    return format_timestamp(datetime.fromtimestamp(at, UTC))
