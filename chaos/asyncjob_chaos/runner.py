"""Runs one cell, and has it judged."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from asyncjob.audit.checker import CheckOptions, HistoryChecker
from asyncjob.audit.evidence import AuditLog, HandlerRecord
from asyncjob.audit.history_file import read_history
from asyncjob.audit.retention_rules import RetentionFloors
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import JsonObject
from asyncjob_chaos.errors import ImpossibleHereError
from asyncjob_chaos.judging.outcomes import Outcomes
from asyncjob_chaos.judging.signs import (
    Sign,
    signs_of_arrays,
    signs_of_ends,
    signs_of_requests,
)
from asyncjob_chaos.judging.trace import HandlerTrace
from asyncjob_chaos.judging.verdict import CellRecord, CellTimes, Verdict, judge
from asyncjob_chaos.matrix import Cell
from asyncjob_chaos.planes import Planes
from asyncjob_chaos.target import FaultTarget, running
from asyncjob_dev.errors import DevError

WARM_SECONDS: Final = 2.0
AFTER_SECONDS: Final = 6.0
END_SECONDS: Final = 120.0
JOBS_PER_SECOND: Final = 25
"""How many jobs must end in a second at least, or a burst is not over in time."""


def run_cell(cell: Cell, planes: Planes, folder: Path, burst: int) -> Verdict:
    """Return what became of the jobs of a cell."""
    began = time.monotonic()
    if reason := cell.fault.cannot():
        return Verdict(cell.name, left_out=reason)
    try:
        verdict = _run(cell, planes, folder, burst)
    except ImpossibleHereError as error:
        return Verdict(cell.name, left_out=str(error))
    except (DevError, AsyncJobError, OSError, TimeoutError, AssertionError) as error:
        verdict = Verdict(cell.name, failed=f"{type(error).__name__}: {error}"[:2000])
    verdict.seconds = time.monotonic() - began
    return verdict


def _run(cell: Cell, planes: Planes, folder: Path, burst: int) -> Verdict:
    namespace = cell.name.replace("/", "-")
    home = folder / namespace
    fault = cell.fault
    with planes.of(fault.setup.plane) as prepared:
        with running(prepared, home, namespace, cell.load, fault.setup) as target:
            target.burst = burst
            transitions = target.transitions()
            time.sleep(WARM_SECONDS)
            with fault.act(target):
                time.sleep(fault.hold)
            times = CellTimes(time.monotonic(), time.time())
            time.sleep(AFTER_SECONDS)
            target.load.stop_submitting()
            target.await_ends(END_SECONDS + len(target.load.accepted) / JOBS_PER_SECOND)
            arrays = target.arrays()
            target.signs[Sign.LEADER_CHANGED] += target.transitions() - transitions
            target.stop_recorder()
        verdict = _judge(cell, target, times, arrays)
    verdict.missing = [sign for sign in fault.shows if not verdict.signs[sign]]
    return verdict


def _judge(
    cell: Cell, target: FaultTarget, times: CellTimes, arrays: Sequence[JsonObject]
) -> Verdict:
    events = [
        orjson.loads(line) for line in target.audit_events() if _is_of(line, target.namespace)
    ]
    outcomes, log, records = Outcomes(), AuditLog(), HandlerRecord()
    for event in events:
        log.add(event)
    for file in target.handler_records:
        records.add_file(str(file))
    checker = HistoryChecker(
        CheckOptions(
            floors=RetentionFloors(), manual_deletions=target.prepared.audit_log is not None
        ),
        log if target.prepared.audit_log else None,
        records if target.handler_records else None,
    )
    report = checker.check(outcomes.seen(read_history(str(target.history))))
    load, trace = target.load, _trace(target)
    found = CellRecord(
        load.accepted,
        outcomes,
        trace,
        report,
        times,
        signals=load.signals,
        accepted_arrays=load.arrays,
        arrays=arrays,
    )
    verdict = judge(cell.name, found)
    verdict.signs = target.signs + signs_of_ends(report.ends) + signs_of_requests(events)
    verdict.signs += outcomes.signs + signs_of_arrays(events)
    verdict.signs[Sign.STEP_BEGUN_AGAIN] += trace.waits.steps_begun_again
    verdict.signs[Sign.SIGNAL_TOO_LATE] += sum(one.accepted is False for one in load.signals)
    verdict.signs[Sign.WATCH_EXPIRED] += len(report.gaps)
    if not report.complete:
        verdict.failed = "the recording is not complete"
    return verdict


def _is_of(line: bytes, namespace: str) -> bool:
    """Whether it is worth parsing; the log is of all cells of its control plane."""
    return f'"namespace":"{namespace}"'.encode() in line


def _trace(target: FaultTarget) -> HandlerTrace:
    if not target.trace.exists():
        return HandlerTrace()
    with target.trace.open("rb") as lines:
        return HandlerTrace.of(_parsed(line) for line in lines)


def _parsed(line: bytes) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(line)
    return found
