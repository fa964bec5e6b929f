"""What happened to a job, as a person reads it. Pure."""

from collections.abc import Sequence
from typing import Final

from asyncjob.cli.durations import parse_time, precise_duration
from asyncjob.cli.looks import phase_colour
from asyncjob.cli.tables import Cell, Row, Table, row
from asyncjob.rest.job import Happening

HISTORY_HEADINGS: Final = ("TIME", "PHASE", "ATTEMPT", "TOOK", "WORKER", "WHY")


def history_table(history: Sequence[Happening]) -> Table:
    """Return the table of what happened, oldest first."""
    days = {one.time[:10] for one in history}
    return Table(HISTORY_HEADINGS, [_history_row(one, with_date=len(days) > 1) for one in history])


def _history_row(one: Happening, *, with_date: bool) -> Row:
    return row(
        format_time(one.time, with_date=with_date),
        Cell(one.phase, phase_colour(one.phase)),
        str(one.attempt or ""),
        attempt_duration(one),
        Cell(pod_name(one.worker or ""), "dim"),
        reason_text(one),
    )


def pod_name(worker: str) -> str:
    """Return the pod of a worker, whose identity has the start of its process after it."""
    return worker.partition("/")[0]


def format_time(time: str, *, with_date: bool = True) -> str:
    """Return a time in UTC without what nobody reads: `2026-11-21 20:04:16`."""
    then = parse_time(time)
    form = "%Y-%m-%d %H:%M:%S" if with_date else "%H:%M:%S"
    return then.strftime(form) if then else time


def attempt_duration(one: Happening) -> str:
    """Return how long the attempt that ended here took."""
    start, end = parse_time(one.start_time), parse_time(one.time)
    return precise_duration((end - start).total_seconds()) if start and end else ""


def reason_text(one: Happening) -> str:
    """Return the reason and its words, once each."""
    return ": ".join(filter(None, (one.reason, one.message)))
