"""What was not looked up is not clean."""

import json
from datetime import date
from typing import Any

import pytest

from asyncjob_dev.supply import (
    FILES,
    ROOT,
    AuditOutput,
    AuditVerdict,
    Findings,
    IgnoredVulnerability,
    findings,
    report,
    verdict,
)

TODAY = date(2026, 11, 21)
FINE: Any = {"name": "a", "version": "1", "vulns": []}
SKIPPED: Any = {"name": "b", "skip_reason": "Dependency not found and could not be audited"}
BAD: Any = {
    "name": "c",
    "version": "2",
    "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["2.1"]}],
}


def of(*dependencies: Any, ignored: IgnoredVulnerability | None = None) -> Findings:
    ran = AuditOutput(json.dumps({"dependencies": dependencies}), "")
    return findings("worker", ran, {ignored.id: ignored} if ignored else {}, TODAY)


def test_every_file_of_pins_is_looked_up() -> None:
    assert set(FILES) == {file.stem for file in (ROOT / "requirements").glob("*.txt")}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (of(FINE), AuditVerdict.CLEAN),
        (of(FINE, BAD), AuditVerdict.VULNERABLE),
        (of(FINE, SKIPPED), AuditVerdict.NOT_LOOKED),
        (of(SKIPPED, BAD), AuditVerdict.VULNERABLE),
        (of(), AuditVerdict.NOT_LOOKED),
        (findings("worker", AuditOutput("", "Traceback\nConnectionError: no"), {}, TODAY), 2),
        (findings("worker", AuditOutput("[]", ""), {}, TODAY), AuditVerdict.NOT_LOOKED),
    ],
)
def test_only_what_was_looked_up_whole_is_clean(found: Findings, expected: int) -> None:
    assert verdict([of(FINE), found]) == expected


def test_a_vulnerability_is_told_with_the_version_that_mends_it() -> None:
    assert of(BAD).vulnerable == ("c 2: PYSEC-1 CVE-1, fixed in 2.1",)


def test_one_that_does_not_concern_us_is_ignored_until_its_day() -> None:
    until_tomorrow = IgnoredVulnerability("CVE-1", "never called", date(2026, 11, 22))
    assert verdict([of(BAD, ignored=until_tomorrow)]) == AuditVerdict.CLEAN
    over = IgnoredVulnerability("CVE-1", "never called", date(2026, 11, 20))
    assert of(BAD, ignored=over).vulnerable[0].endswith("ignored until 2026-11-20: think again")


def test_the_report_says_loudly_what_was_not_looked_up() -> None:
    said = list(report([of(FINE, SKIPPED, SKIPPED)]))
    assert said[0] == "requirements/worker.txt: looked up 1, vulnerable 0"
    assert said[1].startswith("  NOT LOOKED UP b: Dependency not found")
    assert said[1].endswith("and 1 more")
    assert said[-1].startswith("NOT AUDITED")
    gone = findings("worker", AuditOutput("", "Traceback\nConnectionError: no"), {}, TODAY)
    assert "  NOT LOOKED UP all of it: ConnectionError: no" in list(report([gone]))
    assert list(report([of(FINE)]))[-1] == "no known vulnerabilities"
