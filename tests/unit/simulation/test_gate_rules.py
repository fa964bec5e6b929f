"""What counts as a claim before a job's dependencies have ended, and what does not."""

from datetime import UTC, datetime
from typing import Any

import pytest

from asyncjob_simulation.gate_rules import CLOCK_TOLERANCE, NEWS_SECONDS, GateRules
from support.in_memory.memory import Clock

FIRST, AFTER = "first", "after"


class Versions:
    """Rules that learn of versions one by one."""

    def __init__(self, outcome: str = "Any") -> None:
        self.clock = Clock(1000.0)
        self.rules = GateRules(self.clock)
        self.outcome = outcome
        self.incarnation = 1

    def tell(self, name: str, *phases: str) -> None:
        for phase in phases:
            self.rules.take(self._job(name, phase))

    def tell_array(self, *phases: str) -> None:
        for phase in phases:
            self.rules.take_array(self._job(FIRST, phase))

    def start(self, **spec: Any) -> list[str]:
        """Return what is broken by the first chunk of an array that waits for the first one."""
        array = {"spec": {"dependsOn": [{"array": FIRST, "outcome": self.outcome}], **spec}}
        return [promise for promise, _ in self.rules.broken_by_start(array)]

    def claim(self) -> list[str]:
        job = self._job(AFTER, "Running")
        self.rules.take(job)
        return [promise for promise, _ in self.rules.broken_by_claim(job)]

    def _job(self, name: str, phase: str) -> Any:
        depends = [{"name": FIRST, "outcome": self.outcome}] if name == AFTER else []
        meta = {"name": name, "uid": f"{name} {self.incarnation}"}
        return {"metadata": meta, "spec": {"dependsOn": depends}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("outcome", "phase", "broken"),
    [
        pytest.param("Any", "DeadLetter", False, id="any end"),
        pytest.param("Any", "Running", True, id="no end"),
        pytest.param("Succeeded", "Succeeded", False, id="success"),
        pytest.param("Succeeded", "DeadLetter", True, id="another end"),
    ],
)
def test_a_job_is_let_through_once_what_it_depends_on_has_ended(
    outcome: str, phase: str, broken: bool
) -> None:
    versions = Versions(outcome)
    versions.tell(FIRST, "Queued", phase)
    versions.tell(AFTER, "Pending", "Queued")
    assert versions.claim() == ["dependencies first"] * broken


@pytest.mark.parametrize(
    ("outcome", "phases", "broken"),
    [
        ("Any", ["Running", "Failed"], False),
        ("Any", ["Running"], True),
        ("Succeeded", ["Running", "Succeeded"], False),
        ("Succeeded", ["Running", "Failed"], True),
        ("Succeeded", [], True),
    ],
)
def test_an_array_starts_once_what_it_depends_on_has_ended(
    outcome: str, phases: list[str], broken: bool
) -> None:
    versions = Versions(outcome)
    versions.tell(FIRST, "Running")  # a job of the name is another thing
    versions.tell_array(*phases)
    assert versions.start() == ["dependencies first"] * broken


@pytest.mark.parametrize("seconds", [NEWS_SECONDS - 1, NEWS_SECONDS + 1])
def test_a_redrive_of_an_array_may_be_learnt_of_late_but_not_for_good(seconds: float) -> None:
    versions = Versions()
    versions.tell_array("Failed", "Running")
    versions.clock.now += seconds
    assert versions.start() == ["dependencies first"] * (seconds > NEWS_SECONDS)


@pytest.mark.parametrize("early", [CLOCK_TOLERANCE - 1, CLOCK_TOLERANCE + 1])
def test_an_array_does_not_start_before_its_time(early: float) -> None:
    versions = Versions()
    time = datetime.fromtimestamp(versions.clock.now + early, UTC).isoformat()
    broken = versions.start(notBefore=time, dependsOn=[])
    assert broken == ["not before its time"] * (early > CLOCK_TOLERANCE)


def test_a_dead_letter_that_is_redriven_holds_nobody_back_who_was_let_through() -> None:
    versions = Versions()
    versions.tell(FIRST, "DeadLetter")
    versions.tell(AFTER, "Pending", "Queued")
    versions.tell(FIRST, "Pending")
    versions.clock.now += 10 * NEWS_SECONDS
    assert not versions.claim()


@pytest.mark.parametrize("seconds", [NEWS_SECONDS - 1, NEWS_SECONDS + 1])
def test_an_operator_may_learn_of_a_redrive_late_but_not_for_good(seconds: float) -> None:
    versions = Versions()
    versions.tell(FIRST, "DeadLetter", "Pending")
    versions.clock.now += seconds
    versions.tell(AFTER, "Pending", "Queued")
    assert versions.claim() == ["dependencies first"] * (seconds > NEWS_SECONDS)


@pytest.mark.parametrize(
    ("before", "again"),
    [
        pytest.param(("Pending", "Queued"), ("Pending", "Queued"), id="held back"),
        pytest.param(("Queued", "DeadLetter"), ("Queued",), id="redriven"),
    ],
)
def test_who_waits_again_has_to_be_let_through_again(
    before: tuple[str, ...], again: tuple[str, ...]
) -> None:
    versions = Versions()
    versions.tell(FIRST, "DeadLetter")
    versions.tell(AFTER, *before)
    versions.tell(FIRST, "Queued")
    versions.clock.now += 2 * NEWS_SECONDS
    versions.tell(AFTER, *again)
    assert versions.claim() == ["dependencies first"]


def test_another_job_of_the_name_is_no_redrive() -> None:
    versions = Versions()
    versions.tell(FIRST, "DeadLetter")
    versions.incarnation += 1
    versions.tell(FIRST, "Pending")
    versions.tell(AFTER, "Pending", "Queued")
    assert versions.claim() == ["dependencies first"]


@pytest.mark.parametrize("early", [CLOCK_TOLERANCE - 1, CLOCK_TOLERANCE + 1])
def test_a_claim_before_the_start_time_is_seen(early: float) -> None:
    versions = Versions()
    start = datetime.fromtimestamp(versions.clock() + early, UTC).isoformat()
    job = {"metadata": {"uid": "uid"}, "spec": {"notBefore": start}}
    broken = [promise for promise, _ in versions.rules.broken_by_claim(job)]
    assert broken == ["not before its time"] * (early > CLOCK_TOLERANCE)
