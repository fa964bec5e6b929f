"""The comment beside each limit: measured mean and room left, never typed by hand."""

import re
from collections.abc import Mapping
from typing import Final

from asyncjob_bench.reckoning.spread import Spread
from asyncjob_bench.reckoning.tables import between, number
from asyncjob_bench.reckoning.verdicts import Limit

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
