"""What a job keeps of its handler's steps: exactly how much, and what people read beyond that."""

from typing import Any

import pytest

from asyncjob.lifecycle.step_records import (
    MAX_INLINE_STEP_BYTES,
    MAX_JOB_BYTES,
    MAX_STEP_BYTES,
    STEP_RECORD_BYTES,
    inline_bytes,
    step_record,
    steps_of,
    why_no_room,
    why_not_inline,
)

REFERENCE = {"uri": "s3://bucket/a", "sizeBytes": 90_000}


def record(**kept: Any) -> Any:
    return step_record(attempt=2, started="10:00", now="10:05", size=9, **kept)


def test_a_record_says_when_the_step_ran_in_which_attempt_and_what_came_out() -> None:
    always = {"startTime": "10:00", "completionTime": "10:05", "attempt": 2, "sizeBytes": 9}
    assert record() == always
    assert record(result="done") == {**always, "result": "done"}
    assert record(result_ref=REFERENCE) == {**always, "resultRef": REFERENCE}


def test_results_that_are_offloaded_take_no_room_in_the_job() -> None:
    steps = {"a": record(result=1), "b": record(result_ref=REFERENCE), "c": record()}
    assert inline_bytes(steps) == 18
    assert inline_bytes(steps_of({"steps": steps})) == 18
    assert steps_of({}) == {}


def test_the_numbers_are_those_of_the_reference() -> None:
    assert (MAX_STEP_BYTES, MAX_INLINE_STEP_BYTES) == (64 * 1024, 256 * 1024)
    assert STEP_RECORD_BYTES == 4096
    # 1.3 MiB of the 1.5 MiB that the store takes.
    assert int(1.3 * 1024 * 1024) == MAX_JOB_BYTES


def test_a_step_begins_as_long_as_its_record_fits() -> None:
    largest = MAX_JOB_BYTES - 4096
    assert why_no_room("charge", largest) == ""
    assert why_no_room("charge", largest + 1) == (
        f"step 'charge' cannot be kept: the job has {largest + 1} bytes, and with its steps it may "
        "have 1363148"
    )


@pytest.mark.parametrize(
    ("size", "inline", "job_bytes", "why"),
    [
        (65_536, 0, 0, ""),
        (65_537, 0, 0, "has 65537 bytes, a job keeps 65536 of one step"),
        (10, 262_134, 0, ""),
        (
            11,
            262_134,
            0,
            "has 11 bytes, those of the steps before it 262134, and a job keeps 262144 of all "
            "steps",
        ),
        (10, 0, MAX_JOB_BYTES - 4106, ""),
        (
            11,
            0,
            MAX_JOB_BYTES - 4106,
            "has 11 bytes, the job 1359042 without it, and with its steps it may have 1363148",
        ),
    ],
    ids=[
        "64 KiB",
        "a byte more",
        "256 KiB with those before it",
        "a byte more with those before it",
        "what the job has room for beside the record",
        "a byte more than that",
    ],
)
def test_a_result_is_kept_in_the_job(size: int, inline: int, job_bytes: int, why: str) -> None:
    found = why_not_inline("charge", size, inline=inline, job_bytes=job_bytes)
    assert found == (f"the result of step 'charge' {why}" if why else "")
