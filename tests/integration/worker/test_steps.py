"""Steps of a worker process on a real API server: written one by one, kept where it is killed."""

from collections import Counter

import pytest

from asyncjob.lifecycle.step_records import MAX_STEPS
from support.processes.workers import WorkerNamespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

APP = "support.apps.stepped:app"
AT_ONCE = {"retryPolicy": {"maxRetries": 0, "initialDelaySeconds": 0, "jitter": 0}}


def test_each_step_is_one_write_beside_those_of_a_plain_job(ns: WorkerNamespace) -> None:
    ns.worker("worker-0", app=APP)
    ns.create("warm-up", "many", {"steps": 0, "size": 1})
    ns.until_phase("warm-up", "Succeeded")
    before = ns.writes()
    ns.create("three", "many", {"steps": 3, "size": 10})
    assert ns.until_phase("three", "Succeeded")["result"] == 30
    assert ns.writes() - before == Counter({"POST  201": 1, "PATCH status 200": 5})


@pytest.mark.soak
def test_200_steps_of_256_kib_are_kept_and_renewals_go_on(ns: WorkerNamespace) -> None:
    ns.worker("worker-0", app=APP)
    size = 256 * 1024 // MAX_STEPS - 2
    payload = {"steps": MAX_STEPS, "size": size, "pause": 12}
    ns.create("many", "many", payload, leaseDurationSeconds=30)
    ns.until_status("many", lambda status: len(status.get("steps", {})) == MAX_STEPS, within=120)
    known = ns.status("many")["lease"]["renewals"]
    ns.until_status("many", lambda status: status["lease"]["renewals"] > known)
    status = ns.until_phase("many", "Succeeded", within=30)
    assert (status["attempt"], status["result"]) == (1, size * MAX_STEPS)
    assert len(ns.trace()) == MAX_STEPS


def test_results_that_are_too_large_go_to_the_store(ns: WorkerNamespace) -> None:
    ns.worker("worker-0", f"--offload-url=file://{ns.folder}/store", app=APP)
    ns.create("large", "many", {"steps": 2, "size": 100_000})
    status = ns.until_phase("large", "Succeeded")
    for step in status["steps"].values():
        assert "result" not in step
        assert step["resultRef"]["sizeBytes"] == step["sizeBytes"] == 100_002


@pytest.mark.parametrize("type_", ["killed", "killed-isolated"])
def test_a_killed_process_leaves_the_steps_before_done(ns: WorkerNamespace, type_: str) -> None:
    ns.worker("worker-0", app=APP, restart=True)
    ns.create("order", type_, str(ns.folder), **AT_ONCE)
    status = ns.until_phase("order", "Succeeded", within=40)
    assert status["result"] == ["x", "alive", "x"]
    assert (status["attempt"], status.get("crashes", 0)) == (2, 1)
    taken = {key: step["attempt"] for key, step in status["steps"].items()}
    assert taken == {"first": 1, "second": 2, "third": 2}
    assert ns.trace() == [
        f"{key} order {attempt}"
        for key, attempt in (("first", 1), ("second", 1), ("second", 2), ("third", 2))
    ]
