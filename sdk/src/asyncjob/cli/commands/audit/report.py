"""The verdict on a history, for people and for programs."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from asyncjob.audit.catalog import HANDLER_ALONE, Violation
from asyncjob.audit.checker import Gap, HistoryReport
from asyncjob.cli.output.tables import counted, one_line, styled
from asyncjob.errors import explain_command
from asyncjob.json_types import Json
from asyncjob.names import JOBS

_MAX_GAPS_SHOWN: Final = 10


def report_lines(report: HistoryReport, *, colour: bool = False) -> Iterator[str]:
    """Return the verdict for people, the violations first."""
    for violation in report.violations:
        rule = styled(violation.rule.id, "red") if colour else violation.rule.id
        subject = violation.subject
        where = one_line(f"{subject.resource} {subject.namespace}/{subject.name}")
        yield f"{rule}   {where}   {one_line(violation.message)}"
        yield f"    {_evidence_text(violation)}"
    for rule_id, count in report.counts.items():
        shown = sum(violation.rule.id == rule_id for violation in report.violations)
        if count > shown:
            yield f"{rule_id}   {count - shown} more"
    where = "all namespaces" if report.namespace == "*" else f"namespace {report.namespace}"
    spent = f"{_time_text(report.began)} to {_time_text(report.ended)}"
    versions, jobs = counted(report.versions, "version"), counted(report.jobs, "job")
    arrays = f" and {counted(report.arrays, 'array')}" if report.arrays else ""
    yield f"{versions} of {jobs}{arrays} of {one_line(where)}, {spent}"
    broken = counted(report.counts.total(), "violation")
    yield f"{broken} of {counted(len(report.counts), 'rule')}" if report.counts else "no violation"


def uncertainties(report: HistoryReport) -> Iterator[str]:
    """Return in words what could not be judged."""
    yield from map(_gap_text, report.gaps[:_MAX_GAPS_SHOWN])
    if len(report.gaps) > _MAX_GAPS_SHOWN:
        yield f"{counted(len(report.gaps) - _MAX_GAPS_SHOWN, 'more gap')}; -o json shows each"
    if not report.complete:
        yield "the recording was cut off: it was not ended by Ctrl-C, SIGTERM or --for"
    for rule, count in sorted(report.unjudged.items()):
        if rule == HANDLER_ALONE.id:
            yield (
                f"{rule}: {counted(count, 'handler')} went on beside the next after the lease had "
                "expired, not judged: a process that was frozen cannot stop in time"
            )
        else:
            yield (
                f"{rule}: {counted(count, 'deletion')} not judged; --audit-log tells who deleted, "
                "--no-manual-deletions that only the operator did"
            )


def _gap_text(gap: Gap) -> str:
    """Return where versions may be missing, and what of it was not judged."""
    where = f"gap in {gap.resource}, {_time_text(gap.since)} to {_time_text(gap.until)}"
    if gap.resource != JOBS:
        return f"{where}: versions may be missing"
    return (
        f"{where}: versions may be missing; {counted(gap.changed, 'job')} changed in it and "
        f"{gap.created:,} came, judged only by what grows or stays; {gap.gone:,} gone, the end not "
        "seen"
    )


def report_json(report: HistoryReport) -> dict[str, Json]:
    """Return the verdict for programs."""
    return {
        "namespace": report.namespace,
        "from": _time_text(report.began),
        "to": _time_text(report.ended),
        "versions": report.versions,
        "jobs": report.jobs,
        "arrays": report.arrays,
        "attempts": dict(sorted(report.ends.items())),
        "gaps": [
            {
                "resource": gap.resource,
                "from": _time_text(gap.since),
                "to": _time_text(gap.until),
                "changedJobs": gap.changed,
                "newJobs": gap.created,
                "goneJobs": gap.gone,
            }
            for gap in report.gaps
        ],
        "complete": report.complete,
        "violations": dict(sorted(report.counts.items())),
        "unjudged": dict(sorted(report.unjudged.items())),
        "items": [violation_json(violation) for violation in report.violations],
    }


def violation_json(violation: Violation) -> dict[str, Json]:
    """Return a violation for programs."""
    subject = violation.subject
    return {
        "rule": violation.rule.id,
        "demands": violation.rule.description,
        "documented": violation.rule.documented,
        "resource": subject.resource,
        "namespace": subject.namespace,
        "name": subject.name,
        "uid": subject.uid,
        "message": violation.message,
        "resourceVersions": list(violation.versions),
        "times": [_time_text(time) for time in violation.times],
    }


def _evidence_text(violation: Violation) -> str:
    versions = f"version {' → '.join(violation.versions)}; " if violation.versions else ""
    times = " → ".join(_time_text(time) for time in violation.times)
    return f"{versions}{times}; {explain_command(violation.rule.id)}"


def _time_text(time: float) -> str:
    moment = datetime.fromtimestamp(time, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
