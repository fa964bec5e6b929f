"""What a check found."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How serious it is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's, with the way out where there is something to be done."""

    check: str
    severity: Severity
    message: str
    way_out: str = ""


def ok(check: str, message: str) -> Finding:
    """Return that all is well."""
    return Finding(check, Severity.OK, message)


def warning(check: str, message: str, way_out: str = "") -> Finding:
    """Return that something is not as it should be, or could not be looked at."""
    return Finding(check, Severity.WARNING, message, way_out)


def problem(check: str, message: str, way_out: str = "") -> Finding:
    """Return that something will not work."""
    return Finding(check, Severity.PROBLEM, message, way_out)


def most_severe(findings: Iterable[Finding]) -> Severity:
    """Return the most serious verdict."""
    order = list(Severity)
    return max((one.severity for one in findings), key=order.index, default=Severity.OK)


def join_some(names: Iterable[str], limit: int = 5) -> str:
    """Return names as text, the first few of many."""
    there = list(names)
    more = len(there) - limit
    return ", ".join(there[:limit]) + (f" and {more} more" if more > 0 else "")
