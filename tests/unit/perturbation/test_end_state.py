"""Two ends are the same but for what a crash may cost, and no more than that."""

from typing import Any

import pytest

from asyncjob.names import ARRAYS, CRON_JOBS, JOBS, QUEUES
from asyncjob_perturbation.end_state import differences, end_state, is_counted, is_finished


def job(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "uid": "1"}, "status": {"phase": "Succeeded", **status}}


def state(**status: Any) -> dict[str, dict[str, Any]]:
    return end_state({JOBS: {"a": job(**status)}})


def found(expected: dict[str, Any], came: dict[str, Any], crashes: int = 0) -> list[str]:
    return [one.where for one in differences(expected, came, crashes=crashes)]


def test_times_and_names_of_workers_are_left_out() -> None:
    one = state(attempt=1, startTime="2026-01-01T00:00:00Z", message="by worker-1")
    other = state(attempt=1, startTime="2027-01-01T00:00:00Z", message="by worker-2")
    assert found(one, other) == []


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "DeadLetter"},
        {"result": 2},
        {"retries": 1},
        {"redrives": 1},
        {"reruns": 1},
        {"admitted": True},
        {"lease": {"holder": "worker-0"}},
        {"checkpoint": {"row": 1}},
        {"reason": "Dismissed"},
        {"error": {"type": "Fail"}},
        {"conditions": [{"type": "Complete", "status": "True"}]},
        {"parks": 1},
        {"waiting": [{"kind": "Signal", "key": "go"}]},
        {"steps": {"before": {"attempt": 1, "result": "b"}}},
        {"waits": {"go": {"kind": "Signal", "over": True}}},
    ],
)
def test_whatever_else_differs_is_a_difference(change: dict[str, Any]) -> None:
    assert found(state(attempt=1, result=1), state(**{"attempt": 1, "result": 1, **change}))


def test_of_a_step_its_result_counts_and_not_when_it_was_taken() -> None:
    def end(attempt: int, result: int) -> dict[str, dict[str, Any]]:
        return state(attempt=1, steps={"a": {"attempt": attempt, "result": result}})

    assert found(end(1, 1), end(2, 1)) == []
    assert found(end(1, 1), end(1, 2)) == ["asyncjobs/a steps"]


def test_of_an_array_counts_what_has_become_of_its_items() -> None:
    def end(**status: Any) -> dict[str, dict[str, Any]]:
        array = {"metadata": {"name": "sums"}, "status": {"phase": "Succeeded", **status}}
        assert is_finished({ARRAYS: {"sums": array}})
        return end_state({ARRAYS: {"sums": array}})

    assert found(end(succeeded=7, claims=1), end(succeeded=7, claims=4, writer="b")) == []
    assert found(end(succeeded=7), end(succeeded=6, failedItems="3")) == [
        "asyncarrays/sums failedItems",
        "asyncarrays/sums succeeded",
    ]
    assert not is_finished({ARRAYS: {"sums": {"status": {"phase": "Running"}}}})


def test_a_crash_may_cost_one_attempt_that_is_counted_as_a_crash_or_a_release() -> None:
    expected = state(attempt=1)
    assert found(expected, state(attempt=2, crashes=1), 1) == []
    assert found(expected, state(attempt=2, releases=1), 1) == []
    assert found(expected, state(attempt=1), 1) == []


def test_a_crash_before_a_redrive_pays_for_an_attempt_although_the_redrive_sets_it_to_0() -> None:
    def end(*statuses: dict[str, int]) -> dict[str, dict[str, Any]]:
        versions = [job(**status) for status in statuses]
        return end_state({JOBS: {"a": versions[-1]}}, versions)

    crashed = {"attempt": 2, "crashes": 1}
    redriven = {"attempt": 3, "redrives": 1}
    expected = end({"attempt": 1}, {"attempt": 2, "redrives": 1})
    assert found(expected, end({"attempt": 1}, crashed, redriven), 1) == []
    assert found(expected, end({"attempt": 1}, redriven), 1) == ["asyncjobs/a crashes and releases"]
    assert found(expected, end(crashed, redriven, {**crashed, **redriven}), 1)


def test_an_attempt_that_nothing_pays_for_is_a_difference() -> None:
    assert found(state(attempt=1), state(attempt=2), 1) == ["asyncjobs/a crashes and releases"]
    assert found(state(attempt=1), state(attempt=1, crashes=1), 1)


def test_more_attempts_than_crashes_are_a_difference() -> None:
    assert found(state(attempt=1), state(attempt=2, crashes=1), 0) == ["asyncjobs/a attempt"]
    assert found(state(attempt=1), state(attempt=3, crashes=2), 1) == ["asyncjobs/a attempt"]
    assert found(state(attempt=2), state(attempt=1), 1) == ["asyncjobs/a attempt"]


def test_an_object_too_many_and_one_too_few_are_differences() -> None:
    assert found({}, state()) == ["asyncjobs/a"]
    assert found(state(), {}) == ["asyncjobs/a"]


def test_queues_are_compared_by_counts_and_reservations_and_schedules_by_their_runs() -> None:
    def objects(reserved: list[str], active: int) -> dict[str, Any]:
        return end_state(
            {
                QUEUES: {"q": {"metadata": {}, "status": {"reservations": reserved}}},
                CRON_JOBS: {"c": {"metadata": {}, "status": {"activeCount": active}}},
            }
        )

    assert found(objects([], 0), objects([], 0)) == []
    assert found(objects([], 0), objects(["uid"], 0)) == ["asyncqueues/q reservations"]
    assert found(objects([], 0), objects([], 1)) == ["asynccronjobs/c activeCount"]


def test_finished_is_what_has_only_jobs_that_have_ended() -> None:
    assert is_finished({JOBS: {"a": job()}})
    assert not is_finished({JOBS: {"a": job(), "b": job(phase="Retrying")}})


def test_a_queue_counts_all_its_jobs_before_it_is_compared() -> None:
    jobs = {"a": {**job(), "spec": {"queue": "q"}}, "b": {**job(), "spec": {}}}

    def objects(count: int) -> dict[str, Any]:
        counts = [{"phase": "Succeeded", "count": count}]
        return {JOBS: jobs, QUEUES: {"q": {"metadata": {}, "status": {"counts": counts}}}}

    assert is_counted(objects(1))
    assert not is_counted(objects(0))
    assert not is_counted({JOBS: jobs, QUEUES: {"q": {"metadata": {}}}})
    assert is_counted({JOBS: jobs})


def test_counts_of_phases_that_have_passed_do_not_count_all_jobs() -> None:
    jobs = {name: {**job(), "spec": {"queue": "q"}} for name in ("a", "b")}

    def counted(*counts: tuple[str, int]) -> bool:
        status = {"counts": [{"phase": phase, "count": count} for phase, count in counts]}
        return is_counted({JOBS: jobs, QUEUES: {"q": {"metadata": {}, "status": status}}})

    assert counted(("Succeeded", 2))
    assert not counted(("Queued", 1), ("Succeeded", 1))


def test_a_reservation_of_a_job_that_has_ended_is_still_to_be_released() -> None:
    def objects(phase: str) -> dict[str, dict[str, Any]]:
        status = {"counts": [{"phase": phase, "count": 1}], "reservations": [{"uid": "1"}]}
        jobs = {"a": {**job(phase=phase), "spec": {"queue": "q"}}}
        return {JOBS: jobs, QUEUES: {"q": {"metadata": {}, "status": status}}}

    assert is_counted(objects("Queued"))
    assert not is_counted(objects("Succeeded"))
