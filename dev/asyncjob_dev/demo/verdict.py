"""What a scenario of the demo comes to."""

from collections.abc import Callable
from dataclasses import dataclass

from asyncjob import AsyncJob


@dataclass(frozen=True)
class CheckResult:
    """What happened, in words, and what of it should not have."""

    happened: str
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all went as it should."""
        return not self.problems


Check = Callable[[AsyncJob], CheckResult]
"""Looks at a job as the API server has it after the demo."""


@dataclass(frozen=True)
class Scenario:
    """One manifest, and what should become of it; `job` is the name of manifest and object."""

    key: str
    job: str
    what: str
    expected: str


@dataclass(frozen=True)
class ScenarioResult:
    """One line of the summary."""

    scenario: Scenario
    result: CheckResult


def compare(**facts: tuple[object, object]) -> tuple[str, ...]:
    """Return a sentence for each fact (found, wanted) that differs."""
    return tuple(
        f"{name.replace('_', ' ')} is {_text(found)}, not {_text(wanted)}"
        for name, (found, wanted) in facts.items()
        if found != wanted
    )


def _text(value: object) -> str:
    return "absent" if value is None else str(value)
