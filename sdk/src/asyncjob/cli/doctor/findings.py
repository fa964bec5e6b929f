"""Findings, their codes and severity, how they are printed and turned into an exit code. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.output.tables import one_line, styled
from asyncjob.errors import explain_command
from asyncjob.json_types import Json


class Severity(StrEnum):
    """How serious it is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class DoctorCode(StrEnum):
    """What `asyncjob explain` knows a finding by, unless an error is what was found.

    The first two are those of the worker and the operator, whom the same keeps from working.
    """

    NOT_INSTALLED = "not-installed"
    POLICY_MISSING = "policy-missing"
    VERSION_UNKNOWN = "doctor.version-unknown"
    VERSION_TOO_OLD = "doctor.version-too-old"
    NO_GATEWAY = "doctor.no-gateway"
    GATEWAY_VERSION = "doctor.gateway-version"
    CLOCK_UNKNOWN = "doctor.clock-unknown"
    CLOCK_SKEW = "doctor.clock-skew"
    NOT_READABLE = "doctor.not-readable"
    OTHER_RELEASE = "doctor.other-release"
    POLICY_MISTAKE = "doctor.policy-mistake"
    AGES_NOT_STORED = "doctor.ages-not-stored"
    NOT_ENFORCED = "doctor.not-enforced"
    NOT_TRIED = "doctor.not-tried"
    NOT_ALLOWED = "doctor.not-allowed"
    NO_OPERATOR = "doctor.no-operator"
    NO_WORKER = "doctor.no-worker"
    QUEUE_PAUSED = "doctor.queue-paused"
    WORKER_RELEASE = "doctor.worker-release"
    NO_HANDLER = "doctor.no-handler"
    NO_ITEM_HANDLER = "doctor.no-item-handler"
    ARRAY_IDLE = "doctor.array-idle"
    ARRAYS_FAILED = "doctor.arrays-failed"
    SILENT_WORKERS = "doctor.silent-workers"
    OVERDUE = "doctor.overdue"
    NOT_CANCELLED = "doctor.not-cancelled"
    DEAD_LETTERS = "doctor.dead-letters"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's, with the way out where there is something to be done."""

    check: str
    severity: Severity
    message: str
    way_out: str = ""
    code: str = ""
    """What explains it; empty where all is well."""


def ok(check: str, message: str) -> Finding:
    """Return that all is well."""
    return Finding(check, Severity.OK, message)


def warning(check: str, code: str, message: str, way_out: str = "") -> Finding:
    """Return that something is not as it should be, or could not be looked at."""
    return Finding(check, Severity.WARNING, message, way_out, code)


def problem(check: str, code: str, message: str, way_out: str = "") -> Finding:
    """Return that something will not work."""
    return Finding(check, Severity.PROBLEM, message, way_out, code)


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


def finding_lines(
    findings: Sequence[Finding], program: str, *, colour: bool = False
) -> Iterator[str]:
    """Return the findings line by line, below each the way out and the command that explains it."""
    size = max((len(one.check) for one in findings), default=0)
    for one in findings:
        verdict = one.severity.ljust(_SEVERITY_WIDTH)
        shown = styled(verdict, SEVERITY_COLOURS[one.severity]) if colour else verdict
        yield f"{shown}   {one.check.ljust(size)}   {one_line(one.message)}"
        if one.code:
            yield f"{' ' * (_SEVERITY_WIDTH + size + 6)}→ {_way_out(one, program)}"


def _way_out(finding: Finding, program: str) -> str:
    command = explain_command(finding.code, program)
    return f"{one_line(finding.way_out)} ({command})" if finding.way_out else command


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
    return {
        "check": finding.check,
        "verdict": finding.severity.value,
        **({"code": finding.code} if finding.code else {}),
        "message": finding.message,
        **({"wayOut": finding.way_out} if finding.way_out else {}),
    }
