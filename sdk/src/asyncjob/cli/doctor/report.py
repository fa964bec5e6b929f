"""The doctor's findings as lines, and as an exit code. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from asyncjob.cli.doctor.finding import Finding, Severity, most_severe
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.tables import one_line, styled
from asyncjob.json_types import Json

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
    said = ", ".join(f"{count} {kind}{'s' * (count > 1)}" for count, kind in bad)
    return said or "all is well"


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
