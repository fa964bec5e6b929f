"""Tables for people: in a terminal, and in Markdown."""

from collections.abc import Iterable, Sequence

from asyncjob_bench.reckoning.results import Results, Row
from asyncjob_bench.reckoning.spread import Spread
from asyncjob_bench.reckoning.verdicts import Limit, LimitVerdict, check_limits

Lines = list[tuple[str, ...]]


def number(value: float) -> str:
    """Return about three digits that count."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    digits = next((d for bound, d in ((100, 0), (10, 1), (1, 2)) if abs(value) >= bound), 3)
    return f"{value:.{digits}f}"


def bars(verdicts: Iterable[LimitVerdict], results: Results) -> Lines:
    """Return the table of bars, its header first."""
    lines: Lines = [("Bar", "Limit", "Aim", "Median", "Spread", "Verdict")]
    for verdict in verdicts:
        limit = verdict.limit
        measured = "" if verdict.number is None else number(verdict.number)
        spread = between(results.spreads.get(limit.key))
        lines.append((limit.key, limit.text, _aim(limit), measured, spread, verdict.label))
    return lines


def over_runs(limits: Sequence[Limit], runs: Sequence[Results]) -> Lines:
    """Return the bars of several runs side by side; a missed one is in bold."""
    header = ("Bar", "Limit", "Aim", *(str(run.run["began"]) for run in runs))
    judged = [check_limits(limits, run.medians) for run in runs]
    return [
        header,
        *(
            (limit.key, limit.text, _aim(limit), *map(_judged, row))
            for limit, *row in zip(limits, *judged, strict=True)
        ),
    ]


def figures(results: Results, barred: Iterable[str]) -> Lines:
    """Return what else was measured."""
    lines: Lines = [("Figure", "Median", "Spread")]
    known = set(barred)
    for key, spread in results.spreads.items():
        if key not in known:
            lines.append((key, number(spread.median), between(spread)))
    lines += [(part, "left out", why) for part, why in results.left_out.items()]
    lines += [(part, "FAILED", why) for part, why in results.failed.items()]
    return lines


def _aim(limit: Limit) -> str:
    return "" if limit.aim is None else number(limit.aim)


def _judged(verdict: LimitVerdict) -> str:
    if verdict.number is None:
        return verdict.label
    return number(verdict.number) if verdict.met else f"**{number(verdict.number)}**"


def between(spread: Spread | None) -> str:
    """Return the least and the greatest, where there are several."""
    if spread is None or len(spread.values) < 2:
        return ""
    return f"{number(spread.low)} to {number(spread.high)}"


def rows(found: Sequence[Row]) -> Lines:
    """Return rows as a table; a column that some rows lack is empty there."""
    header = tuple(dict.fromkeys(name for row in found for name in row))
    return [header, *(tuple(_cell(row.get(name, "")) for name in header) for row in found)]


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else number(value)


def terminal(lines: Lines) -> str:
    """Return a table in columns of even width."""
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    rule = tuple("-" * width for width in widths)
    shown = [lines[0], rule, *lines[1:]]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in shown
    )
