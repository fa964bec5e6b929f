"""What the steps found, as people read it. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Verdict(StrEnum):
    """What became of a check."""

    OK = "ok"
    FAILED = "FAILED"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what was looked at, and what was seen."""

    verdict: Verdict
    what: str
    seen: str = ""


def ok(what: str, seen: str = "") -> Check:
    """Return a check that went well."""
    return Check(Verdict.OK, what, seen)


def failed(what: str, seen: str) -> Check:
    """Return a check that did not."""
    return Check(Verdict.FAILED, what, seen)


def not_tried(what: str, why: str) -> Check:
    """Return a check that could not be made here."""
    return Check(Verdict.NOT_TRIED, what, why)


def judged(what: str, problems: Iterable[str], seen: str = "") -> Check:
    """Return a check that goes well if there are no problems."""
    found = "; ".join(problems)
    return failed(what, found) if found else ok(what, seen)


@dataclass(frozen=True, slots=True)
class StepReport:
    """A step's checks, and the seconds that it took."""

    step: str
    checks: tuple[Check, ...]
    seconds: float = 0.0


LEFT_FOR_PEOPLE: Final = (
    "write [project.urls] (source, documentation, issues, changelog) with the repository's public "
    "address into each pyproject.toml; no project page has links until then",
    "give CHANGELOG.md the date, run `make release-fixtures` and `make release-check`",
    "set the repository variables IMAGE_REGISTRY, IMAGE_BASE (by digest) and, for publishing the "
    "distributions, PYTHON_INDEX; and the secrets REGISTRY_USER and REGISTRY_PASSWORD",
    "reserve the names of the distributions at the index, and name this repository's workflow "
    "release.yaml there as a trusted publisher",
    "protect the environment `release`, and say who may approve it",
    "tag vX.Y.Z and push the tag; signing happens in the workflow, without a key",
    "look at `make audit` where the advisory service can be reached",
)


def lines(reports: Iterable[StepReport]) -> Iterator[str]:
    """Yield the report: step by step, then what was not tried, then what is left for people."""
    skipped: list[str] = []
    for report in reports:
        yield f"{report.step} ({report.seconds:.0f} s)"
        for check in report.checks:
            yield f"  {check.verdict:9}  {check.what}{': ' if check.seen else ''}{check.seen}"
            if check.verdict is Verdict.NOT_TRIED:
                skipped.append(f"{report.step}: {check.what}")
    if skipped:
        yield "Not tried here:"
        yield from (f"  {one}" for one in skipped)
    yield "Left for a person:"
    yield from (f"  {number}. {one}" for number, one in enumerate(LEFT_FOR_PEOPLE, 1))


def has_failed(reports: Iterable[StepReport]) -> bool:
    """Return whether any check failed."""
    return any(check.verdict is Verdict.FAILED for one in reports for check in one.checks)
