"""Arrays as tables, in one line, and in detail. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from asyncjob.cli.durations import human_duration, precise_duration, time_since
from asyncjob.cli.output.detail import (
    LABEL_WIDTH,
    Hint,
    RenderContext,
    depends_on_text,
    hint_lines,
    time_and_age,
    waiting_hints,
)
from asyncjob.cli.output.job_table import format_time
from asyncjob.cli.output.tables import (
    NAMESPACE_HEADING,
    Cell,
    Row,
    Table,
    counted,
    one_line,
    prepend_column,
    render_lines,
    row,
    truncate,
)
from asyncjob.lifecycle.arrays.chunks import chunk_type
from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.lifecycle.timestamps import try_parse_timestamp
from asyncjob.models.array import ItemFailure
from asyncjob.rest.arrays import ArrayInfo, items_per_second, seconds_left
from asyncjob.rest.item_states import ItemState

ARRAY_PHASE_COLOURS: Final[dict[ArrayPhase, str]] = {
    ArrayPhase.PENDING: "blue",
    ArrayPhase.RUNNING: "magenta",
    ArrayPhase.SUCCEEDED: "green",
    ArrayPhase.FAILED: "red",
    ArrayPhase.CANCELLED: "dim",
}

ARRAY_HEADINGS: Final = (
    *("NAME", "PHASE", "TYPE", "QUEUE", "TOTAL", "SUCCEEDED", "FAILED", "OPEN"),
    *("PROGRESS", "RATE", "LEFT", "AGE", "WHY"),
)
FAILURE_HEADINGS: Final = ("ITEM", "TYPE", "CATEGORY", "MESSAGE")
STATE_HEADINGS: Final = ("STATE", "COUNT", "ITEMS")

SHOWN_CHARACTERS: Final = 400
"""Characters of item numbers that are shown; `-o json` has all of them."""


def array_table(
    arrays: Sequence[ArrayInfo], now: datetime, *, everywhere: bool | None = False
) -> Table:
    """Return the table of a list of arrays; `everywhere`: of several namespaces."""
    table = Table(ARRAY_HEADINGS, [_array_row(one, now) for one in arrays])
    if everywhere:
        return prepend_column(NAMESPACE_HEADING, (one.namespace for one in arrays), table)
    return table


def _array_row(array: ArrayInfo, now: datetime) -> Row:
    return row(
        Cell(array.name, "bold"),
        Cell(phase_text(array), ARRAY_PHASE_COLOURS[array.phase]),
        array.type,
        array.queue,
        str(array.total),
        str(array.succeeded),
        Cell(str(array.failed), "red" if array.failed else "dim"),
        str(array.open_chunks),
        f"{array.percent}%",
        rate_text(array, now),
        left_text(array, now),
        time_since(array.created_at, now),
        Cell(": ".join(filter(None, (array.reason, array.message))), "dim"),
    )


def phase_text(array: ArrayInfo) -> str:
    """Return the phase, and what is asked of the array beside it."""
    if array.cancelling:
        return f"{array.phase.value}, cancelling"
    if array.redriving:
        return f"{array.phase.value}, redriving"
    held = array.suspended and not array.finished
    return f"{array.phase.value}, suspended" if held else array.phase.value


def rate_text(array: ArrayInfo, now: datetime) -> str:
    """Return how many items a second: `350/s`, `0.2/s`; nothing before the first."""
    rate = items_per_second(array, now)
    if rate is None:
        return ""
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"  # noqa: PLR2004 - two digits


def left_text(array: ArrayInfo, now: datetime) -> str:
    """Return how long the rest takes: `4m`; nothing where that cannot be told."""
    left = seconds_left(array, now)
    return "" if left is None else human_duration(left)


def progress_line(array: ArrayInfo, now: datetime) -> str:
    """Return how far it is: `thumbs Running 40% of 1,000 items, 2 failed, 350/s, 4m left`.

    Before it starts, what it waits for: `thumbs Pending: waiting for fetch`. Where no worker takes
    its chunks, that at the end.
    """
    if array.phase is ArrayPhase.PENDING and array.message:
        return f"{array.name} {phase_text(array)}: {one_line(array.message)}"
    rate, left = rate_text(array, now), left_text(array, now)
    parts = (
        _share(array),
        f"{array.failed:,} failed" if array.failed else "",
        rate,
        f"{left} left" if left else "",
    )
    line = f"{array.name} {phase_text(array)} {', '.join(filter(None, parts))}"
    lacks_worker = array.reason == ArrayReason.NO_WORKER and not array.finished
    return f"{line}: {one_line(array.message or '')}" if lacks_worker else line


def _share(array: ArrayInfo) -> str:
    if not array.total and not array.finished:
        return "counting its items"
    return f"{array.percent}% of {counted(array.total, 'item')}"


def array_detail(array: ArrayInfo, context: RenderContext) -> Iterator[str]:
    """Return the array, line by line."""
    phase = context.paint(phase_text(array), ARRAY_PHASE_COLOURS[array.phase])
    yield f"{context.paint(array.name, 'bold')}   {phase} {array.percent}%"
    if array.reason or array.message:
        yield f"  {one_line(': '.join(filter(None, (array.reason, array.message))))}"
    yield ""
    for label, value in _facts(array, context.now):
        if value:
            yield f"{context.paint(label.ljust(LABEL_WIDTH), 'dim')}{one_line(value)}"
    errors = array.status.errors if array.status else None
    if errors:
        yield ""
        yield from render_lines(failure_table(errors), colour=context.colour, width=context.width)
    yield from hint_lines(list(_hints(array, context.program)), context)


def _facts(array: ArrayInfo, now: datetime) -> Iterator[tuple[str, str]]:
    spec, status = array.spec, array.status
    yield "Type", array.type
    yield "Queue", array.queue + (f", priority {spec.priority}" if spec and spec.priority else "")
    yield (
        "Items",
        f"{array.total:,}: {array.succeeded:,} succeeded, {array.failed:,} failed, "
        f"{array.total - array.done:,} to do"
        + (f"; {array.skipped:,} were done before" if array.skipped else ""),
    )
    if status and status.failed_items:
        yield "Failed", truncate(status.failed_items, SHOWN_CHARACTERS)
    if spec:
        under_way = f"{array.open_chunks} of at most {spec.parallelism} under way"
        yield "Chunks", ", ".join(filter(None, (under_way, chunk_size_text(array))))
        yield "Not before", format_time(spec.not_before) if spec.not_before else ""
        yield "Depends on", depends_on_text(spec.depends_on or ())
    yield "Results", array.results or ""
    yield "Rate", rate_text(array, now)
    yield "Ends", _expected_end(array, now)
    yield "Created", time_and_age(array.created_at, now)
    yield "Started", time_and_age(array.started_at, now)
    yield "Ended", time_and_age(array.completed_at, now) + _took(array)
    yield "Labels", ", ".join(f"{key}={value}" for key, value in sorted(array.labels.items()))


def chunk_size_text(array: ArrayInfo) -> str:
    """Return how many items a chunk has, and whether that adapts; empty if it is not known."""
    chosen = array.spec.chunk_size if array.spec else None
    if chosen is not None:
        return f"{counted(chosen, 'item')} each"
    size = array.status.chunk_size if array.status else None
    return f"{counted(size, 'item')} in the next one, which adapts" if size else ""


def _expected_end(array: ArrayInfo, now: datetime) -> str:
    left = seconds_left(array, now)
    return "" if left is None else f"in about {precise_duration(round(left))}"


def _took(array: ArrayInfo) -> str:
    started = try_parse_timestamp(array.started_at or "")
    ended = try_parse_timestamp(array.completed_at or "")
    if started is None or ended is None:
        return ""
    return f", took {precise_duration((ended - started).total_seconds())}"


def _hints(array: ArrayInfo, program: str) -> Iterator[Hint]:
    name = array.name
    if array.failed:
        yield Hint(f"{program} array items {name} --failed", "which items failed, and why")
    if array.results and array.succeeded:
        yield Hint(f"{program} array results {name}", "what the items have returned")
    if array.phase is ArrayPhase.FAILED and not array.redriving:
        yield Hint(f"{program} array redrive {name}", "run what has failed, and what was not run")
    if array.finished or array.cancelling:
        return
    waits = array.reason == ArrayReason.WAITING_FOR_DEPENDENCY
    if waits and array.spec:
        yield from waiting_hints(array.spec.depends_on or (), program)
    if array.suspended:
        yield Hint(f"{program} array resume {name}", "let it go on")
    else:
        yield Hint(f"{program} array wait {name}", "wait until it has ended")
    chunks = chunk_type(array.type, has_results=bool(array.results))
    yield Hint(f"{program} list --type {chunks}", "its chunks, which are jobs")
    yield Hint(f"{program} array cancel {name}", "run no more of it")


def failure_table(errors: Sequence[ItemFailure]) -> Table:
    """Return the errors of items."""
    rows = [row(str(one.item), one.type, one.category, Cell(one.message, "red")) for one in errors]
    return Table(FAILURE_HEADINGS, rows)


def state_table(states: Sequence[ItemState]) -> Table:
    """Return the states of items."""
    rows = [row(one.state, f"{one.count}", Cell(one.items, "dim")) for one in states]
    return Table(STATE_HEADINGS, rows)
