"""Arrays on real processes: how they end, and what they can be asked while they run."""

import pytest

from support.driven.arrays import Arrays, all_of, numbers, pause
from support.processes.operator import OperatorProcess
from support.processes.workers import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def test_each_item_is_run_once_and_the_array_completes(
    arrays: Arrays, operator: OperatorProcess
) -> None:
    arrays.worker()
    arrays.create("all", "note", 1000, chunkSize=100, parallelism=4)
    status = arrays.until_phase("all", "Succeeded")
    assert all_of(status) == (1000, 0, "")
    assert (status["next"], status["percent"], status.get("open")) == (1000, 100, None)
    assert arrays.runs("all") == dict.fromkeys(range(1000), 1)
    arrays.until_no_chunks()


def test_without_a_chunk_size_chunks_grow_while_they_end_quickly(
    arrays: Arrays, operator: OperatorProcess
) -> None:
    arrays.worker()
    array = arrays.create("adapts", "note", 3000, parallelism=2)
    assert "chunkSize" not in array["spec"]
    begun = arrays.until("adapts", lambda status: "chunkSize" in status)
    assert begun["chunkSize"] >= 10
    status = arrays.until_phase("adapts", "Succeeded")
    assert all_of(status) == (3000, 0, "")
    assert status["chunkSize"] > 100
    assert status["generation"] < 30
    assert arrays.runs("adapts") == dict.fromkeys(range(3000), 1)
    arrays.create("chosen", "note", 10, chunkSize=3)
    assert "chunkSize" not in arrays.until_phase("chosen", "Succeeded")


def test_kubectl_waits_for_an_array_and_shows_it(arrays: Arrays) -> None:
    arrays.worker()
    arrays.create("shown", "threaded", 20, chunkSize=7)
    namespace = f"--namespace={arrays.ns.namespace}"
    kubectl = arrays.ns.plane.kubectl
    kubectl("wait", namespace, "--for=condition=Complete", "aa/shown", "--timeout=40s")
    printed = kubectl("get", namespace, "aa").stdout
    assert printed.splitlines()[0].split() == [
        *("NAME", "PHASE", "TYPE", "TOTAL", "SUCCEEDED", "FAILED", "OPEN", "PROGRESS"),
        *("PER-MINUTE", "AGE"),
    ]
    assert printed.splitlines()[1].split()[:7] == [
        *("shown", "Succeeded", "threaded", "20", "20", "0", "0")
    ]
    assert arrays.runs("shown") == dict.fromkeys(range(20), 1)


def test_items_that_stand_in_the_array_are_given_to_the_handler(arrays: Arrays) -> None:
    arrays.worker()
    (arrays.ns.folder / "failing").write_text("30 50")
    arrays.create("inline", "picky", 0, items={"inline": [10, 20, 30, 40, 50]}, chunkSize=2)
    status = arrays.until_phase("inline", "Failed")
    assert all_of(status) == (3, 2, "2,4")
    assert {error["message"] for error in status["errors"]} == {
        *("item 30 is wrong", "item 50 is wrong")
    }


def test_a_failing_item_is_tried_again_and_one_that_stays_failed_is_named(arrays: Arrays) -> None:
    arrays.worker()
    (arrays.ns.folder / "failing").write_text("7 8 9 42")
    (arrays.ns.folder / "shaky").write_text("3")
    retry = {"initialDelaySeconds": 0.1, "jitter": 0}
    arrays.create("some", "picky", 50, chunkSize=20, retryPolicy=retry)
    status = arrays.until_phase("some", "Failed")
    assert all_of(status) == (46, 4, "7-9,42")
    assert (status["reason"], status["conditions"][0]["type"]) == ("ItemsFailed", "Failed")
    assert arrays.ns.trace("shaky") == ["shaky some 3 1", "shaky some 3 2"]


def test_an_item_that_hangs_fails_alone(arrays: Arrays) -> None:
    arrays.worker()
    (arrays.ns.folder / "hanging").write_text("5")
    arrays.create("hangs", "picky", 20, itemTimeoutSeconds=1, itemRetries=0)
    status = arrays.until_phase("hangs", "Failed")
    assert all_of(status) == (19, 1, "5")
    assert status["errors"][0]["category"] == "Timeout"


def test_more_failed_items_than_allowed_end_the_array_early(arrays: Arrays) -> None:
    arrays.worker()
    (arrays.ns.folder / "failing").write_text(" ".join(map(str, range(1000))))
    arrays.create("bad", "picky", 1000, chunkSize=10, parallelism=2, maxFailedPercent=1)
    status = arrays.until_phase("bad", "Failed")
    assert status["reason"] == "TooManyFailed"
    assert 10 < status["failed"] < 100
    assert status["next"] < 1000


def test_a_cancelled_array_cancels_its_chunks(arrays: Arrays) -> None:
    arrays.worker()
    arrays.create("stop", "gated", 100, chunkSize=10, parallelism=3)
    arrays.until_begun("stop")
    arrays.ask("stop", cancel=True)
    status = arrays.until_phase("stop", "Cancelled")
    assert status["conditions"][0]["type"] == "Cancelled"
    assert status["succeeded"] == 0
    arrays.until_no_chunks()


def test_a_suspended_array_starts_nothing_until_it_is_resumed(arrays: Arrays) -> None:
    arrays.create("later", "note", 100, chunkSize=10, parallelism=2)
    arrays.until("later", lambda status: len(status.get("open", [])) == 2)
    arrays.ask("later", suspend=True)
    arrays.until("later", lambda status: status.get("reason") == "Suspended")
    arrays.worker()
    pause()
    assert arrays.runs("later") == {}
    arrays.ask("later", suspend=False)
    arrays.until_phase("later", "Succeeded")
    assert arrays.runs("later") == dict.fromkeys(range(100), 1)


def test_failed_items_are_run_again_and_no_others_twice_over(arrays: Arrays) -> None:
    arrays.worker()
    failing = arrays.ns.folder / "failing"
    failing.write_text("3 30")
    arrays.create("again", "picky", 40, chunkSize=20)
    assert all_of(arrays.until_phase("again", "Failed")) == (38, 2, "3,30")
    failing.write_text("30")
    arrays.ask("again", redrive=1)
    status = arrays.until(
        "again", lambda one: one["phase"] == "Failed" and one.get("redrives") == 1
    )
    assert all_of(status) == (39, 1, "30")
    failing.write_text("")
    arrays.ask("again", redrive=2)
    assert all_of(arrays.until_phase("again", "Succeeded")) == (40, 0, "")
    assert arrays.runs("again") == dict.fromkeys(range(40), 1)


def test_the_chunks_of_an_array_that_is_deleted_go_as_well(arrays: Arrays) -> None:
    arrays.worker()
    arrays.create("gone", "gated", 100, chunkSize=10, parallelism=3)
    arrays.until_begun("gone")
    arrays.delete("gone")
    arrays.until_no_chunks()
    assert arrays.runs("gone") == {}


def test_an_array_that_has_ended_is_deleted_after_its_time(arrays: Arrays) -> None:
    arrays.worker()
    arrays.create("brief", "note", 5, ttlSecondsAfterFinished=1)
    namespace = f"--namespace={arrays.ns.namespace}"
    arrays.ns.plane.kubectl("wait", namespace, "--for=delete", "aa/brief", "--timeout=40s")


def test_single_jobs_find_a_slot_beside_an_array(arrays: Arrays) -> None:
    arrays.worker("worker-0", "--concurrency=4")
    arrays.create("wide", "gated", 100, chunkSize=5, parallelism=20)

    def running() -> int:
        return sum(one["status"]["phase"] == "Running" for one in arrays.chunks())

    until(lambda: running() == 3, 15, lambda: f"{running()} chunks run")
    arrays.ns.create("one", "single")
    arrays.ns.until_phase("one", "Succeeded")
    assert running() == 3
    (arrays.ns.folder / "gate").touch()
    assert all_of(arrays.until_phase("wide", "Succeeded")) == (100, 0, "")


def test_a_sync_item_handler_refuses_a_time_limit_in_words(arrays: Arrays) -> None:
    arrays.worker()
    arrays.create("limited", "threaded", 3, itemTimeoutSeconds=1)
    status = arrays.until_phase("limited", "Failed")
    assert numbers(status["failedItems"]) == {0, 1, 2}
    assert "itemTimeoutSeconds needs" in status["errors"][0]["message"]


def test_a_payload_that_is_too_large_is_refused_in_words(arrays: Arrays) -> None:
    arrays.create("large", "note", 3, payload="x" * 70_000)
    status = arrays.until_phase("large", "Failed")
    assert status["reason"] == "PayloadTooLarge"
    assert "70002 bytes" in status["message"]


def test_a_worker_without_the_item_handler_leaves_chunks_alone_and_the_array_says_so(
    arrays: Arrays,
) -> None:
    arrays.worker(app="support.apps.worker:app")
    arrays.create("unknown", "note", 3, chunkSize=3)
    arrays.until("unknown", lambda status: status.get("open", [{}])[0].get("uid"))
    pause()
    [chunk] = arrays.chunks()
    assert chunk["status"]["phase"] == "Queued"
    status = arrays.until("unknown", lambda status: status.get("reason") == "NoWorker", within=90)
    said = "no live worker of queue default has an item handler for note; 1 live worker lists "
    assert status["message"].startswith(said)
    arrays.worker("worker-1")
    status = arrays.until_phase("unknown", "Succeeded")
    assert "reason" not in status
    assert arrays.runs("unknown") == dict.fromkeys(range(3), 1)


def test_a_chunk_that_runs_goes_on_under_suspend_and_none_is_cut_after_it(arrays: Arrays) -> None:
    arrays.worker()
    arrays.create("held", "slow", 400, chunkSize=200, parallelism=1)
    arrays.until_some_run("held", 1)
    arrays.ask("held", suspend=True)
    status = arrays.until("held", lambda status: status["succeeded"] == 200)
    assert (status["phase"], status["reason"], status["next"]) == ("Running", "Suspended", 200)
    pause()
    assert arrays.runs("held") == dict.fromkeys(range(200), 1)
    arrays.ask("held", suspend=False)
    arrays.until_phase("held", "Succeeded")
    assert arrays.runs("held") == dict.fromkeys(range(400), 1)
