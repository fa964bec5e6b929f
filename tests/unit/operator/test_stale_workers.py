"""Which workers' Leases go, and how."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from asyncjob.errors import ForbiddenError, UnknownOutcomeError
from asyncjob.kube import KubeSession
from asyncjob.names import COMPONENT_LABEL, WORKER_COMPONENT
from asyncjob.worker_lease import read_worker_lease
from asyncjob_operator.controllers.stale_workers import StaleWorkerCollector
from asyncjob_operator.core.workers import (
    WorkerLeaseVersion,
    lease_version,
    stale_leases,
    track_unchanged,
)
from asyncjob_operator.kube.paths import leases_path
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.in_memory.fake_session import FakeSession
from support.parts.vitals import quarantine

TIMEOUT = 120.0
PATH = leases_path("ns")


def lease(pod: str = "a", version: str = "1", duration: int = 45) -> WorkerLeaseVersion:
    name = f"asyncjob-worker-{pod}"
    return WorkerLeaseVersion("ns", name, f"uid-{pod}", version, duration)


def gone(
    *given: WorkerLeaseVersion, at: float, busy: frozenset[tuple[str, str]] = frozenset()
) -> Any:
    """Return the pods whose Leases go, if all of them were first seen at 0."""
    renewals = track_unchanged({}, given, 0.0)
    return [one.pod[1] for one in stale_leases(renewals, busy, TIMEOUT, at)]


def test_a_lease_that_has_not_changed_for_the_whole_time_goes_and_no_sooner() -> None:
    assert gone(lease(), at=TIMEOUT - 0.1) == []
    assert gone(lease(), at=TIMEOUT) == ["a"]


def test_a_change_starts_the_time_again_and_the_same_version_does_not() -> None:
    first = track_unchanged({}, [lease("a"), lease("b")], 0.0)
    second = track_unchanged(first, [lease("a", version="2"), lease("b")], 60.0)
    assert [one.pod[1] for one in stale_leases(second, set(), TIMEOUT, 125.0)] == ["b"]


def test_a_lease_of_the_same_name_and_another_uid_is_another() -> None:
    first = track_unchanged(
        {}, [WorkerLeaseVersion("ns", "asyncjob-worker-a", "old", "1", 45)], 0.0
    )
    second = track_unchanged(first, [lease("a")], 100.0)
    assert stale_leases(second, set(), TIMEOUT, 150.0) == []


def test_a_pod_that_still_holds_a_job_keeps_its_lease_until_the_job_is_gone() -> None:
    assert gone(lease(), at=900, busy=frozenset({("ns", "a")})) == []
    assert gone(lease(), at=900, busy=frozenset({("other", "a"), ("ns", "b")})) == ["a"]


def test_a_worker_that_says_it_announces_itself_seldom_is_waited_for() -> None:
    assert gone(lease(duration=600), at=599) == []
    assert gone(lease(duration=600), at=600) == ["a"]


def test_leases_of_others_are_no_business_of_ours() -> None:
    other = WorkerLeaseVersion("ns", "asyncjob-operator", "uid", "1", 10)
    assert track_unchanged({}, [other], 0.0) == {}


class StaleWorkersHarness:
    """Leases on a fake API server, and a clock in the test's hands."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self.session, self.metrics = FakeSession(), OperatorMetrics()
        self.now, self.leads = 0.0, True
        self.busy: set[tuple[str, str]] = set()
        self.collector = StaleWorkerCollector(
            cast("KubeSession", self.session),
            ("ns",),
            timeout=timeout,
            busy_pods=lambda: self.busy,
            clock=lambda: self.now,
            leads=lambda: self.leads,
            metrics=self.metrics,
            quarantine=quarantine(),
        )

    def announce(self, pod: str, holder: str = "me") -> None:
        meta = {
            "namespace": "ns",
            "name": f"asyncjob-worker-{pod}",
            "uid": f"uid-{pod}",
            "labels": {COMPONENT_LABEL: WORKER_COMPONENT},
        }
        self.session.put(f"{PATH}/{meta['name']}", {"metadata": meta, "spec": {"holder": holder}})

    async def later(self, seconds: float) -> int:
        self.now += seconds
        return await self.collector.collect()

    @property
    def removed(self) -> float:
        value: float = self.metrics.workers_removed._value.get()
        return value

    @property
    def pods(self) -> list[str]:
        return [path.rpartition("-")[2] for path in self.session.objects]


async def test_the_silent_go_exactly_as_they_were_judged_and_the_live_stay() -> None:
    harness = StaleWorkersHarness()
    harness.announce("silent")
    harness.announce("withdrawn", holder="")
    harness.announce("live")
    await harness.later(0)
    version = harness.session.objects[f"{PATH}/asyncjob-worker-silent"]["metadata"][
        "resourceVersion"
    ]
    harness.announce("live")
    assert await harness.later(TIMEOUT) == 2
    assert harness.pods == ["live"]
    path, body = next((path, body) for _, path, body in harness.session.writes if "silent" in path)
    assert path == f"{PATH}/asyncjob-worker-silent"
    assert body["preconditions"] == {"uid": "uid-silent", "resourceVersion": version}
    assert harness.removed == 2


async def test_a_lease_renewed_in_between_stays() -> None:
    harness = StaleWorkersHarness()
    harness.announce("late")
    await harness.later(0)
    harness.session.before_write = lambda _path: harness.announce("late")
    assert await harness.later(TIMEOUT) == 0
    assert harness.pods == ["late"]
    assert harness.removed == 0


async def test_a_busy_pods_lease_stays_until_its_jobs_are_elsewhere() -> None:
    harness = StaleWorkersHarness()
    harness.announce("busy")
    harness.busy = {("ns", "busy")}
    await harness.later(0)
    assert await harness.later(TIMEOUT) == 0
    harness.busy = set()
    assert await harness.later(1) == 1


async def test_without_the_lead_nothing_is_removed() -> None:
    harness = StaleWorkersHarness()
    harness.announce("silent")
    await harness.later(0)
    harness.leads = False
    assert await harness.later(TIMEOUT) == 0
    assert harness.session.writes == []


async def test_after_an_outage_everybody_is_given_the_whole_time_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*_: object) -> AsyncIterator[Any]:
        raise UnknownOutcomeError("no answer")

    harness = StaleWorkersHarness()
    harness.announce("patient")
    await harness.later(0)
    with monkeypatch.context() as outage:
        outage.setattr(harness.session, "list", away)
        with pytest.raises(UnknownOutcomeError):
            await harness.later(TIMEOUT)
    assert await harness.later(1) == 0
    assert await harness.later(TIMEOUT) == 1


async def test_a_refusal_stops_nobody_elses_removal() -> None:
    harness = StaleWorkersHarness()
    harness.announce("a")
    harness.announce("b")
    harness.session.fail("DELETE", f"{PATH}/asyncjob-worker-a", ForbiddenError(status=403))
    await harness.later(0)
    assert await harness.later(TIMEOUT) == 1
    assert harness.pods == ["a"]


def test_a_lease_that_does_not_say_how_long_it_lasts_asks_for_no_time_of_its_own() -> None:
    seen = lease_version(read_worker_lease({"metadata": {"name": "asyncjob-worker-a"}}))
    assert (seen.pod, seen.duration) == (("", "a"), 0)
