"""Arrays whose workers end: an item that kills fails alone, and what was run is not run again."""

import pytest

from support.driven.arrays import Arrays, all_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


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
