"""Judges the versions that a case has stored by the rules of `asyncjob audit check`."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from asyncjob.audit.checker import CheckOptions, HistoryChecker
from asyncjob.audit.evidence import HandlerRecord
from asyncjob.audit.history_file import FORMAT, WHOLE, HistoryLine
from asyncjob.audit.recorded_object import recorded_object, status_written_at
from asyncjob.audit.recorder import RECORDED
from asyncjob.audit.retention_rules import RetentionFloors
from asyncjob.json_types import Json
from asyncjob_perturbation.cluster import Seen


def broken_rules(seen: Seen, handler_record: Path) -> list[str]:
    """Return which rules were broken, in words."""
    record = HandlerRecord()
    if handler_record.exists():
        record.add_file(str(handler_record))
    options = CheckOptions(floors=RetentionFloors(min_age=0), manual_deletions=False)
    report = HistoryChecker(options, None, record).check(_lines(seen))
    return [
        f"{one.rule.id}: {one.subject.resource}/{one.subject.name}: {one.message}"
        for one in report.violations
    ]


def _lines(seen: Seen) -> Iterator[dict[str, Json]]:
    if not seen.versions:
        return
    first, last = seen.versions[0].at, seen.versions[-1].at
    yield _line(HistoryLine.START, first, format=FORMAT, version="", namespace="*", contents=WHOLE)
    for resource in RECORDED:
        yield _line(HistoryLine.LIST, first, resource=resource, gap=False)
        yield _line(HistoryLine.LIST_END, first, resource=resource, resourceVersion="")
    for version in seen.versions:
        if version.resource not in RECORDED:
            continue
        obj = recorded_object(version.obj, version.resource, whole=True)
        written = status_written_at(version.obj)
        more: dict[str, Json] = {"written": written} if written else {}
        yield _line(
            HistoryLine.VERSION,
            version.at,
            resource=version.resource,
            event=version.event,
            object=obj,
            **more,
        )
    yield _line(HistoryLine.END, last, versions=len(seen.versions), gaps=0)


def _line(line: HistoryLine, at: datetime, **fields: Json) -> dict[str, Json]:
    time = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"line": line.value, "time": time, **fields}
