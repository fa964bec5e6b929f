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
