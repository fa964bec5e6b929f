"""What is said while something is missing, and how often."""

import asyncio
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from asyncjob.errors import ObjectNotFoundError
from asyncjob.names import CRON_JOBS, JOBS, QUEUES
from asyncjob_operator import startup_checks
from asyncjob_operator.kube.preflight import Findings
from asyncjob_operator.settings import Settings
from asyncjob_operator.startup_checks import (
    FIRST_RECHECK_SECONDS,
    JOB_API_RECHECK_SECONDS,
    required_permissions,
    wait_for_job_api,
    wait_for_prerequisites,
)


class Session:
    """Has an address alone: the findings are a script, in an order that no server can be told."""

    class access:  # noqa: N801  # stands for an attribute
        namespace = "ns"
        host = "host"


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
    assert len(answers) <= len(FIRST_RECHECK_SECONDS)
    monkeypatch.setattr(startup_checks, "preflight", preflight)
    monkeypatch.setattr(startup_checks, "_log_findings", said.append)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert await wait_for_prerequisites(cast("Any", Session), Settings()) is answers[-1]
    assert said == [answers[0], answers[2], answers[3]]


@pytest.mark.parametrize(("timeout", "needed"), [(120.0, True), (0.0, False)])
def test_removing_leases_is_asked_for_only_if_they_are_to_be_removed(
    timeout: float, needed: bool
) -> None:
    titles = [one.title for one, _ in required_permissions(Settings(worker_timeout=timeout), "ns")]
    assert ("delete leases.coordination.k8s.io" in titles) is needed


async def test_while_jobs_are_not_served_it_says_once_a_minute_what_to_apply_and_then_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at, served = [0.0], {"resources": [{"name": name} for name in (JOBS, QUEUES, CRON_JOBS)]}
    pauses: list[float] = []

    class Discovery(Session):
        async def get(self, _path: str) -> Any:
            if at[0] < 90:
                raise ObjectNotFoundError(status=404)
            return served

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        at[0] += seconds

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(startup_checks, "monotonic", lambda: at[0])
    with capture_logs() as logs:
        await asyncio.wait_for(wait_for_job_api(cast("Any", Discovery())), 10)
    first, second, last = [entry["event"] for entry in logs]
    assert first == second
    assert first.startswith("not installed: asyncjobs.asyncjob.dev")
    assert first.endswith("apply the CRDs: kubectl apply -f crds/ (asyncjob explain not-installed)")
    assert last == "AsyncJobs are served again"
    assert max(pauses) == JOB_API_RECHECK_SECONDS[-1]


async def test_where_jobs_are_served_nothing_is_waited_for_although_cron_jobs_are_not() -> None:
    class Discovery(Session):
        async def get(self, _path: str) -> Any:
            return {"resources": [{"name": JOBS}]}

    with capture_logs() as logs:
        await wait_for_job_api(cast("Any", Discovery()))
    assert logs == []
