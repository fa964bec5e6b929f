"""The table of a run, as Markdown and as JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from asyncjob_chaos.judging.signs import Sign
from asyncjob_chaos.judging.verdict import Verdict

HEAD: Final = (
    "cell",
    "jobs",
    "lost",
    "doubled",
    "rules broken",
    "repeated work",
    "time to recover",
    "p99 of pick-up after it",
    "holds",
)


def markdown(verdicts: Sequence[Verdict]) -> str:
    """Return the table, and below it what went wrong or could not be tried."""
    rows = [" | ".join(HEAD), " | ".join(["---"] + ["--:"] * (len(HEAD) - 2) + ["---"])]
    rows += [" | ".join(_row(one)) for one in verdicts]
    return "\n".join(f"| {row} |" for row in rows)


def _row(one: Verdict) -> list[str]:
    if one.left_out:
        return [f"`{one.cell}`", *[""] * (len(HEAD) - 2), f"not run: {one.left_out}"]
    return [
        f"`{one.cell}`",
        str(one.jobs),
        str(len(one.lost)),
        str(len(one.doubled)),
        str(sum(one.broken.values())),
        str(one.repeated),
        _seconds(one.recovered),
        _seconds(one.pickup_p99),
        "yes" if one.holds else "**no**",
    ]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s" if value < 1 else f"{value:.1f} s"


def complaints(verdicts: Iterable[Verdict], unseen: Iterable[Sign]) -> list[str]:
    """Return in words all that makes the run fail."""
    found = []
    for one in verdicts:
        said = [*one.lost[:5], *one.doubled[:5], *one.messages[:5]]
        said += [f"never happened: {sign}" for sign in one.missing]
        said += [one.failed] if one.failed else []
        found += [f"{one.cell}: {words}" for words in said]
    return found + [f"in no cell: {sign}" for sign in unseen]


def signs_seen(verdicts: Iterable[Verdict]) -> list[str]:
    """Return how often each sign was seen, the most frequent first."""
    total: Counter[Sign] = Counter()
    for one in verdicts:
        total += one.signs
    return [f"{count:7}  {sign}" for sign, count in total.most_common()]


def to_json(verdicts: Iterable[Verdict], unseen: Iterable[Sign], **run: Any) -> dict[str, Any]:
    """Return all of it for a file."""
    return {
        **run,
        "cells": [one.to_json() for one in verdicts],
        "neverHappened": [str(sign) for sign in unseen],
    }
