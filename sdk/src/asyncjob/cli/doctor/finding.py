"""What a check found."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How serious it is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's, with the way out where there is something to be done."""

    check: str
    verdict: Verdict
    message: str
    way_out: str = ""


def ok(check: str, message: str) -> Finding:
    """Return that all is well."""
    return Finding(check, Verdict.OK, message)


def warning(check: str, message: str, way_out: str = "") -> Finding:
    """Return that something is not as it should be, or could not be looked at."""
    return Finding(check, Verdict.WARNING, message, way_out)


def problem(check: str, message: str, way_out: str = "") -> Finding:
    """Return that something will not work."""
    return Finding(check, Verdict.PROBLEM, message, way_out)


def worst(findings: Iterable[Finding]) -> Verdict:
    """Return the most serious verdict."""
    order = list(Verdict)
    return max((one.verdict for one in findings), key=order.index, default=Verdict.OK)


def listed(names: Iterable[str], most: int = 5) -> str:
    """Return names as text, the first few of many."""
    there = list(names)
    more = len(there) - most
    return ", ".join(there[:most]) + (f" and {more} more" if more > 0 else "")
