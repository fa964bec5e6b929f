"""What is said while something is missing, and how often."""

import asyncio
from typing import Any, cast

import pytest

from asyncjob_operator.handlers import readiness
from asyncjob_operator.handlers.readiness import FIRST_PAUSES, asked, wait_until_fit
from asyncjob_operator.handlers.settings import Settings
from asyncjob_operator.kube.preflight import Findings


class Session:
    class access:  # noqa: N801  # stands for an attribute
        namespace = "ns"


async def test_the_same_findings_in_another_order_are_not_said_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [
        Findings(errors=["one", "two"], warnings=["x", "y"]),
        Findings(errors=["two", "one"], warnings=["y", "x"]),
        Findings(errors=["two"], warnings=["y", "x"]),
        Findings(),
    ]
    said: list[Findings] = []

    async def preflight(*_: Any) -> Findings:
        return answers[checks.pop(0)]

    async def sleep(_seconds: float) -> None:
        pass

    checks = list(range(len(answers)))
    assert len(answers) <= len(FIRST_PAUSES)
    monkeypatch.setattr(readiness, "preflight", preflight)
    monkeypatch.setattr(readiness, "_say", said.append)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert await wait_until_fit(cast("Any", Session), Settings()) is answers[-1]
    assert said == [answers[0], answers[2], answers[3]]


@pytest.mark.parametrize(("timeout", "needed"), [(120.0, True), (0.0, False)])
def test_removing_leases_is_asked_for_only_if_they_are_to_be_removed(
    timeout: float, needed: bool
) -> None:
    titles = [one.title for one, _ in asked(Settings(worker_timeout=timeout), "ns")]
    assert ("delete leases.coordination.k8s.io" in titles) is needed
