"""Findings, their severity, and how they are printed and turned into an exit code. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.output.tables import one_line, styled
from asyncjob.json_types import Json


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


SEVERITY_COLOURS: Final = {
    Severity.OK: "green",
    Severity.WARNING: "yellow",
    Severity.PROBLEM: "red",
}
_SEVERITY_WIDTH: Final = max(map(len, Severity))


def finding_lines(findings: Sequence[Finding], *, colour: bool = False) -> Iterator[str]:
    """Return the findings line by line, each way out below its finding."""
    size = max((len(one.check) for one in findings), default=0)
    for one in findings:
        verdict = one.severity.ljust(_SEVERITY_WIDTH)
        shown = styled(verdict, SEVERITY_COLOURS[one.severity]) if colour else verdict
        yield f"{shown}   {one.check.ljust(size)}   {one_line(one.message)}"
        if one.way_out:
            yield f"{' ' * (_SEVERITY_WIDTH + size + 6)}→ {one_line(one.way_out)}"


def findings_summary(findings: Sequence[Finding]) -> str:
    """Return the sum of it."""
    counts = Counter(one.severity for one in findings)
    bad = [(counts[kind], kind) for kind in (Severity.PROBLEM, Severity.WARNING) if counts[kind]]
    summary = ", ".join(f"{count} {kind}{'s' * (count > 1)}" for count, kind in bad)
    return summary or "all is well"


def findings_exit_code(findings: Sequence[Finding], *, strict: bool = False) -> ExitCode:
    """Return 1 where there is a problem, or with `strict` a warning."""
    verdict = most_severe(findings)
    bad = verdict is Severity.PROBLEM or (strict and verdict is Severity.WARNING)
    return ExitCode.FAILED if bad else ExitCode.OK


def finding_json(finding: Finding) -> dict[str, Json]:
    """Return a finding for programs."""
    out: dict[str, Json] = {"wayOut": finding.way_out} if finding.way_out else {}
    return {
        "check": finding.check,
        "verdict": finding.severity.value,
        "message": finding.message,
        **out,
    }
