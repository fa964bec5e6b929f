"""Arrays whose workers and operators are killed: each item is counted once, and all are run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.driven.arrays import Arrays, all_of, pause
from support.processes.operator import OperatorProcess
from support.processes.workers import worker_namespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

QUICK = ("--lease-margin=0.3", "--backoff-initial=0.2", "--backoff-max=2")
SECONDS_OF_ITEMS = 2
"""A worker's death makes it run again what it ran in this time: a checkpoint is a second apart."""


@pytest.fixture
def apart(plane: ControlPlane, tmp_path: Path) -> Iterator[Arrays]:
    """Prepare a namespace whose operator the test starts and kills."""
    with worker_namespace(plane, tmp_path) as prepared:
        yield Arrays(prepared)


@pytest.mark.soak
def test_two_thousand_items_survive_the_deaths_of_their_worker_and_of_the_operator(
    apart: Arrays, access: Path, tmp_path: Path
) -> None:
    home = (f"--namespace={apart.ns.namespace}", f"--lease-namespace={apart.ns.namespace}")
    operator = OperatorProcess(access, tmp_path / "operator.log", *QUICK, *home)
    with operator:
        operator.until_ready().until_leading()
        worker = apart.worker("worker-0", "--concurrency=4", restart=True)
        apart.worker("worker-1", "--concurrency=4")
        apart.create(
            "long",
            "slow",
            2000,
            chunkSize=100,
            parallelism=6,
            leaseDurationSeconds=5,
            retryPolicy={"initialDelaySeconds": 0.2},
        )
        apart.until_some_run("long", 300)
        worker.process.kill()
        apart.until_some_run("long", 700)
        operator.kill()
        pause()
        operator.start()
        operator.until_ready().until_leading()
        apart.until_some_run("long", 1300)
        operator.kill()
        worker.process.kill()
        operator.start()
        operator.until_ready().until_leading()
        status = apart.until_phase("long", "Succeeded", within=150)
        apart.until_no_chunks()
    assert all_of(status) == (2000, 0, "")
    runs = apart.runs("long")
    assert set(runs) == set(range(2000))
    # Two deaths; four slots with eight items at a time, of a twentieth of a second each.
    assert sum(runs.values()) - 2000 <= 2 * SECONDS_OF_ITEMS * 4 * 8 * 20


def test_an_item_that_ends_its_worker_fails_alone(arrays: Arrays) -> None:
    (arrays.ns.folder / "fatal").write_text("5")
    arrays.worker("worker-0", "--concurrency=2", restart=True)
    arrays.create(
        "poison",
        "picky",
        12,
        chunkSize=4,
        parallelism=2,
        leaseDurationSeconds=5,
        retryPolicy={"maxCrashes": 0, "initialDelaySeconds": 0.1},
    )
    status = arrays.until_phase("poison", "Failed", within=150)
    assert all_of(status) == (11, 1, "5")
    [error] = status["errors"]
    assert (error["item"], error["type"]) == (5, "Crash")


def test_an_item_that_ends_its_own_process_fails_alone_and_disturbs_nobody(arrays: Arrays) -> None:
    arrays.worker("worker-0", "--concurrency=4")
    arrays.create("beside", "gated", 2, chunkSize=2)
    arrays.until_begun("beside")
    policy = {"maxCrashes": 0, "initialDelaySeconds": 0.1}
    some = {"chunkSize": 4, "parallelism": 2, "retryPolicy": policy}
    arrays.create("poison", "apart", 12, payload={"5": "segfault"}, **some)
    status = arrays.until_phase("poison", "Failed", within=150)
    assert all_of(status) == (11, 1, "5")
    [error] = status["errors"]
    assert (error["item"], error["type"]) == (5, "Crash")
    assert "SIGSEGV" in error["message"]
    assert set(arrays.runs("poison")) == {*range(12)} - {5}
    # The same worker holds the same chunk all the while: its items have begun once.
    (arrays.ns.folder / "gate").touch()
    assert all_of(arrays.until_phase("beside", "Succeeded")) == (2, 0, "")
    assert len(arrays.ns.trace("begin beside ")) == 2


def test_an_item_that_lets_nothing_else_run_is_killed_by_the_time_limit_of_its_chunk(
    arrays: Arrays,
) -> None:
    arrays.worker("worker-0", "--concurrency=2", "--stop-wait=0.2")
    policy = {"maxRetries": 0, "initialDelaySeconds": 0.1}
    some = {"executionTimeoutSeconds": 6, "retryPolicy": policy}
    arrays.create("stuck", "apart", 6, payload={"2": "deaf"}, **some)
    status = arrays.until_phase("stuck", "Failed", within=120)
    assert all_of(status) == (5, 1, "2")
    assert status["errors"][0]["type"] == "ExecutionTimeout"


def test_the_process_of_a_chunk_that_is_drained_hands_over_what_it_has_not_run(
    arrays: Arrays,
) -> None:
    first = arrays.worker("worker-0", "--grace=0.2")
    arrays.create("drained", "apart", 200, chunkSize=200, payload={"seconds": "0.05"})
    arrays.until_some_run("drained", 60)
    first.process.terminate()
    arrays.worker("worker-1")
    assert all_of(arrays.until_phase("drained", "Succeeded")) == (200, 0, "")
    runs = arrays.runs("drained")
    assert set(runs) == set(range(200))
    assert max(runs.values()) == 1


def test_a_worker_that_is_told_to_stop_hands_over_what_it_has_not_run(arrays: Arrays) -> None:
    first = arrays.worker("worker-0")
    arrays.create("drained", "slow", 400, chunkSize=400)
    arrays.until_some_run("drained", 60)
    first.process.terminate()
    arrays.worker("worker-1")
    assert all_of(arrays.until_phase("drained", "Succeeded")) == (400, 0, "")
    runs = arrays.runs("drained")
    assert set(runs) == set(range(400))
    assert max(runs.values()) == 1
