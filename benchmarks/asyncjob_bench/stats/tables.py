"""Tables of results, in a terminal and in Markdown.

Also the comment beside each limit, with the measured mean and the headroom.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from asyncjob_bench.stats.limits import Limit, LimitVerdict, check_limits
from asyncjob_bench.stats.results import Results, Row, Spread

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


def figures(results: Results, limited: Iterable[str]) -> Lines:
    """Return what else was measured."""
    lines: Lines = [("Figure", "Median", "Spread")]
    known = set(limited)
    for key, spread in results.spreads.items():
        if key not in known:
            lines.append((key, number(spread.median), between(spread)))
    lines += [(part, "left out", why) for part, why in results.left_out.items()]
    lines += [(part, "FAILED", why) for part, why in results.failed.items()]
    return lines


HEADLINE: Final = (
    ("asyncjob", "end_to_end_jobs_s", "jobs_s_per_api_core"),
    ("its three writes, by a generator in Go", "raw_ceiling_jobs_s", "raw_jobs_s_per_api_core"),
    ("the same writes without schema and rules", "bare_ceiling_jobs_s", "bare_jobs_s_per_api_core"),
    ("native Jobs", "native_jobs_s", "native_jobs_s_per_api_core"),
    ("procrastinate on PostgreSQL", "peer_postgres_jobs_s", ""),
    ("items of an array of ours", "array_items_s", ""),
)
"""What the page begins with: whose rate, and the keys of the rate and of that per core."""


def headline(results: Results) -> Lines:
    """Return the rates of all that is compared, and those per core of the API server."""
    found = results.medians
    lines: Lines = [("What", "a second", "a second and core of the API server")]
    for what, rate, per_core in HEADLINE:
        if rate in found:
            core = number(found[per_core]) if per_core in found else ""
            lines.append((what, number(found[rate]), core))
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


COMMENT_PREFIX: Final = "# Measured"
_ENTRY: Final = re.compile(r"^(\w+) = \{")


def annotate_text(text: str, limits: Mapping[str, Limit], spreads: Mapping[str, Spread]) -> str:
    """Return the file with a new remark above each of these limits that was measured."""
    lines: list[str] = []
    for line in text.splitlines():
        found = _ENTRY.match(line)
        limit, spread = (limits.get(found[1]), spreads.get(found[1])) if found else (None, None)
        if limit and spread:
            if lines and lines[-1].startswith(COMMENT_PREFIX):
                lines.pop()
            lines.append(limit_comment(limit, spread))
        lines.append(line)
    return "\n".join(lines) + "\n"


def limit_comment(limit: Limit, spread: Spread) -> str:
    """Return the remark on one limit."""
    mean = f"{COMMENT_PREFIX}: mean {number(spread.mean)}{' ' if limit.unit else ''}{limit.unit}"
    reach = f" ({between(spread)})" if between(spread) else ""
    return f"{mean}{reach}; {headroom(limit, spread.mean)}."


def headroom(limit: Limit, mean: float) -> str:
    """Return how far a mean lies within its limit, in words."""
    if limit.kind == "exactly":
        return "no headroom, it is a count"
    share = mean / limit.value - 1 if limit.kind == "at_least" else 1 - mean / limit.value
    return f"headroom {share:.0%}" if share >= 0 else f"MISSED by {-share:.0%}"
