"""Many jobs with one deduplication id: one is let through, and nobody beside them waits."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from asyncjob.names import JOBS, collection_path
from asyncjob_dev.api import Object
from asyncjob_dev.controlplane import ControlPlane
from support.driven.fake_worker import FakeWorker
from support.driven.jobs import Jobs, until
from support.processes.operator import QUICK, OperatorProcess

pytestmark = [pytest.mark.integration, pytest.mark.alone, pytest.mark.timeout(400)]

MANY = 2000
ADMITTED_WITHIN = 2.0
HELD_AT_MOST = 0.1
LATER = "2099-01-01T00:00:00Z"


class TwoTenants:
    """Two tenants, and an operator that tells for how long its loop was held."""

    def __init__(self, plane: ControlPlane, access: Path, folder: Path, stack: ExitStack) -> None:
        self.crowd, self.beside = Jobs(plane.api), Jobs(plane.api)
        self.held = folder / "held"
        home = f"--lease-namespace={self.crowd.namespace}"
        spaces = [f"--namespace={jobs.namespace}" for jobs in (self.crowd, self.beside)]
        self._operator = OperatorProcess(access, folder / "log", *QUICK, home, *spaces)
        self._operator.run_module(
            "support.programs.probed_operator", {"OPERATOR_HELD_FILE": str(self.held)}
        )
        self._stack = stack
        self._number = 0

    def start(self) -> None:
        self._stack.enter_context(self._operator).until_ready(within=60).until_leading()

    def apply(self) -> None:
        """Create all of them, as many at once as a client does."""
        with ThreadPoolExecutor(8) as pool:
            names = [f"same-{number}" for number in range(MANY)]
            list(pool.map(lambda name: self.crowd.create(name, deduplicationId="one"), names))

    def admission(self, jobs: Jobs) -> float:
        """Create an honest job that needs to be admitted; return after how long it is."""
        self._number += 1
        name = f"honest-{self._number}"
        jobs.create(name, notAfter=LATER)
        began = time.monotonic()
        until(lambda: jobs.status(name).get("admitted"), 30, "an admission", every=0.02)
        return time.monotonic() - began

    def same(self) -> list[Object]:
        listed = self.crowd.api.get(collection_path(self.crowd.namespace, JOBS))["items"]
        return [job for job in listed if job["metadata"]["name"].startswith("same-")]

    def settled(self) -> bool:
        phases = Counter(job["status"]["phase"] for job in self.same())
        return phases == {"Cancelled": MANY - 1, "Queued": 1}


@pytest.fixture
def tenants(
    fragile_plane: ControlPlane, operator_access: Path, tmp_path: Path
) -> Iterator[TwoTenants]:
    with ExitStack() as stack:
        yield TwoTenants(fragile_plane, operator_access, tmp_path, stack)


@pytest.mark.parametrize("when", ["applied while it runs", "there when it starts"])
def test_of_two_thousand_jobs_with_one_id_one_runs_and_an_honest_job_is_admitted_at_once(
    tenants: TwoTenants, when: str
) -> None:
    waits: list[float] = []
    with ThreadPoolExecutor(1) as pool:
        if when == "applied while it runs":
            tenants.start()
            applying = pool.submit(tenants.apply)
        else:
            tenants.apply()
            tenants.start()
            applying = pool.submit(lambda: None)
        while not (applying.done() and tenants.settled()):
            waits += [tenants.admission(tenants.beside), tenants.admission(tenants.crowd)]
        applying.result()
    assert float(tenants.held.read_text()) <= HELD_AT_MOST
    assert max(waits) <= ADMITTED_WITHIN, sorted(waits)[-5:]
    cancelled = [job for job in tenants.same() if job["status"]["phase"] == "Cancelled"]
    assert {job["status"]["reason"] for job in cancelled} == {"Duplicate"}
    [holder] = [job for job in tenants.same() if job["status"]["phase"] == "Queued"]
    name = holder["metadata"]["name"]
    until(lambda: tenants.crowd.status(name).get("admitted"), 5)
    FakeWorker(tenants.crowd).claim(name)
    assert tenants.crowd.status(name)["phase"] == "Running"
