"""Known vulnerabilities in what the requirement files pin, by pip-audit; judged here. Pure.

pip-audit calls a package about which its service says nothing "skipped", and a run in which all
were skipped clean. Here what was not looked up is not clean.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from enum import IntEnum
from typing import Any, Final

FILES: Final = ("worker", "operator", "build", "dev")
"""Requirement files; the first two are shipped."""


class AuditVerdict(IntEnum):
    """The exit code."""

    CLEAN = 0
    VULNERABLE = 1
    NOT_LOOKED = 2


@dataclass(frozen=True, slots=True)
class IgnoredVulnerability:
    """A vulnerability that does not concern us: why, and until when that was thought through."""

    id: str
    reason: str
    until: date


@dataclass(frozen=True, slots=True)
class AuditOutput:
    """What a run of pip-audit left."""

    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found in one file, and what of it was not looked up."""

    file: str
    checked: int = 0
    vulnerable: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def findings(
    file: str, ran: AuditOutput, ignored: Mapping[str, IgnoredVulnerability], today: date
) -> Findings:
    """Return what a run found; one without a readable answer has looked at nothing."""
    try:
        dependencies: list[dict[str, Any]] = json.loads(ran.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = ran.stderr.strip().splitlines()[-1:] or ["no answer"]
        return Findings(file, unknown=(f"all of it: {last[0][:300]}",))
    unknown = [one for one in dependencies if "skip_reason" in one]
    return Findings(
        file,
        checked=len(dependencies) - len(unknown),
        vulnerable=tuple(_vulnerabilities(dependencies, ignored, today)),
        unknown=tuple(f"{one['name']}: {one['skip_reason']}" for one in unknown),
    )


def _vulnerabilities(
    dependencies: list[dict[str, Any]], ignored: Mapping[str, IgnoredVulnerability], today: date
) -> Iterator[str]:
    for one in dependencies:
        for found in one.get("vulns", ()):
            ids = (found["id"], *found.get("aliases", ()))
            known = next((ignored[id_] for id_ in ids if id_ in ignored), None)
            if known and known.until >= today:
                continue
            late = f"; ignored until {known.until}: think again" if known else ""
            fixes = ", ".join(found.get("fix_versions", ())) or "no version yet"
            yield f"{one['name']} {one['version']}: {' '.join(ids)}, fixed in {fixes}{late}"


def verdict(all_: list[Findings]) -> AuditVerdict:
    """Return the verdict on all files."""
    if any(one.vulnerable for one in all_):
        return AuditVerdict.VULNERABLE
    if any(one.unknown or not one.checked for one in all_):
        return AuditVerdict.NOT_LOOKED
    return AuditVerdict.CLEAN


def report(all_: list[Findings]) -> Iterator[str]:
    """Yield what people are told."""
    for one in all_:
        name = f"requirements/{one.file}.txt"
        yield f"{name}: looked up {one.checked}, vulnerable {len(one.vulnerable)}"
        yield from (f"  VULNERABLE {text}" for text in one.vulnerable)
        if one.unknown:
            more = f" and {len(one.unknown) - 1} more" if len(one.unknown) > 1 else ""
            yield f"  NOT LOOKED UP {one.unknown[0]}{more}"
    yield {
        AuditVerdict.CLEAN: "no known vulnerabilities",
        AuditVerdict.VULNERABLE: "vulnerable: upgrade (make lock), or say in "
        "requirements/audit.toml "
        "why it does not concern us",
        AuditVerdict.NOT_LOOKED: "NOT AUDITED: the advisory service could not be asked about all "
        "of it; "
        "this says nothing about vulnerabilities",
    }[verdict(all_)]
