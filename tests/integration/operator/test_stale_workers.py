"""Workers that have gone silent disappear from the list of workers."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from asyncjob.json_types import Json, JsonObject
from asyncjob.kube import KubeSession, load_access
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_operator.controllers.stale_workers import StaleWorkerCollector
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, until
from support.parts.vitals import quarantine
from support.processes.operator import QUICK, OperatorProcess

pytestmark = pytest.mark.integration

TIMEOUT = 2.0
REMOVED = "asyncjob_operator_workers_removed_total"


@pytest.fixture
def alone(fragile_plane: ControlPlane) -> Jobs:
    """Jobs of a namespace that only the test's own operator looks after."""
    return Jobs(fragile_plane.api)


@pytest.fixture
def impatient(operator_access: Path, alone: Jobs, tmp_path: Path) -> Iterator[OperatorProcess]:
    home = (f"--namespace={alone.namespace}", f"--lease-namespace={alone.namespace}")
    options = (*QUICK, *home, f"--worker-timeout={TIMEOUT}", "--log-level=DEBUG")
    with OperatorProcess(operator_access, tmp_path / "log", *options) as running:
        yield running.until_ready().until_leading()


def test_silent_and_withdrawn_workers_go_while_live_and_busy_ones_stay(
    alone: Jobs, impatient: OperatorProcess
) -> None:
    silent, withdrawn, live, busy = (
        FakeWorker(alone, name) for name in ("silent", "withdrawn", "live", "busy")
    )
    alone.create("held")
    busy.claim("held", lease=60)
    withdrawn.withdraw()

    def gone() -> bool:
        live.announce()
        return not silent.announced and not withdrawn.announced

    until(gone, 5 * TIMEOUT)
    until_later = time.monotonic() + 2 * TIMEOUT
    while time.monotonic() < until_later:
        live.announce()
        time.sleep(0.2)
    assert live.announced
    assert busy.announced
    assert impatient.metric(REMOVED) == 2
    assert impatient.logs().count("silent worker removed") == 2
    busy.succeed("held")
    until(lambda: not busy.announced, 5 * TIMEOUT)


class TooLate(KubeSession):
    """Lets a worker renew its Lease just before it is deleted."""

    worker: FakeWorker

    async def delete(self, path: str, body: Mapping[str, Json] | None = None) -> JsonObject:
        self.worker.announce()
        return await super().delete(path, body)


async def test_a_worker_that_renews_its_lease_in_the_last_moment_keeps_it(
    operator_access: Path, alone: Jobs
) -> None:
    clock = iter((0.0, 120.0))
    access, metrics = await load_access(str(operator_access)), OperatorMetrics()
    async with TooLate(access, field_manager="asyncjob-operator") as session:
        session.worker = FakeWorker(alone)
        collector = StaleWorkerCollector(
            session,
            (alone.namespace,),
            timeout=120,
            busy_pods=set,
            clock=lambda: next(clock),
            leads=lambda: True,
            metrics=metrics,
            quarantine=quarantine(),
        )
        assert [await collector.collect() for _ in range(2)] == [0, 0]
        assert session.worker.announced
        assert "renewTime" in alone.api.get(session.worker.lease_path)["spec"]
