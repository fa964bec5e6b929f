"""What happened to a job, as a person reads it. Pure."""

from collections.abc import Sequence
from typing import Final

from asyncjob.cli.durations import exactly, moment
from asyncjob.cli.looks import colour_of
from asyncjob.cli.tables import Cell, Row, Table, row
from asyncjob.rest.job import Happening

HEAD: Final = ("TIME", "PHASE", "ATTEMPT", "TOOK", "WORKER", "WHY")


def timeline(history: Sequence[Happening]) -> Table:
    """Return the table of what happened, oldest first."""
    days = {one.time[:10] for one in history}
    return Table(HEAD, [_row(one, dated=len(days) > 1) for one in history])


def _row(one: Happening, *, dated: bool) -> Row:
    return row(
        clock(one.time, dated=dated),
        Cell(one.phase, colour_of(one.phase)),
        str(one.attempt or ""),
        took(one),
        Cell(pod_of(one.worker or ""), "dim"),
        because(one),
    )


def pod_of(worker: str) -> str:
    """Return the pod of a worker, whose identity has the start of its process after it."""
    return worker.partition("/")[0]


def clock(time: str, *, dated: bool = True) -> str:
    """Return a time in UTC without what nobody reads: `2026-11-21 20:04:16`."""
    then = moment(time)
    form = "%Y-%m-%d %H:%M:%S" if dated else "%H:%M:%S"
    return then.strftime(form) if then else time


def took(one: Happening) -> str:
    """Return how long the attempt that ended here took."""
    start, end = moment(one.start_time), moment(one.time)
    return exactly((end - start).total_seconds()) if start and end else ""


def because(one: Happening) -> str:
    """Return the reason and its words, once each."""
    return ": ".join(filter(None, (one.reason, one.message)))
