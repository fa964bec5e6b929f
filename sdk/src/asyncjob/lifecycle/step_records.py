"""What a job keeps of the steps of its handler: the record of each, and how much of them fits.

A step is done once its record is in `status.steps`. Records are only added; a redrive leaves them
there, and a rerun is a new job without them.
"""

from typing import Final

from asyncjob.json_types import Json, JsonObject, as_object, child, integer

MAX_STEPS: Final = 200
"""Steps that a job keeps: the rule that compares them costs the API server some of each write."""

MAX_STEP_KEY_LENGTH: Final = 128
"""Characters of a step's key."""

MAX_STEP_BYTES: Final = 64 * 1024
"""Largest result of a step that is kept in the job itself, as JSON."""

MAX_INLINE_STEP_BYTES: Final = 256 * 1024
"""How much the results of all steps in the job itself take together."""

MAX_JOB_BYTES: Final = 1_363_148
"""Size up to which steps may let a job grow: 1.3 MiB. The store takes 1.5 MiB by default, and
checkpoint, result and history still have to fit."""

STEP_RECORD_BYTES: Final = 4096
"""Room that a step needs beside its result: key, times, and the reference to what is offloaded."""


def step_record(
    *, attempt: int, started: str, now: str, size: int, result: Json = None, result_ref: Json = None
) -> JsonObject:
    """Return the record of a step; of `result` and `result_ref` one at most is given.

    `started` and `now` are RFC 3339 text, `size` is that of the result in bytes.
    """
    record: dict[str, Json] = {
        "startTime": started,
        "completionTime": now,
        "attempt": attempt,
        "sizeBytes": size,
    }
    if result is not None:
        record["result"] = result
    if result_ref is not None:
        record["resultRef"] = result_ref
    return record


def inline_bytes(steps: JsonObject) -> int:
    """Return how many bytes the results take that are in the job itself."""
    records = map(as_object, steps.values())
    return sum(integer(one, "sizeBytes") for one in records if "resultRef" not in one)


def steps_of(status: JsonObject) -> JsonObject:
    """Return the records of the steps that are done, by key."""
    return child(status, "steps")


def why_no_room(key: str, job_bytes: int) -> str:
    """Return why a step cannot be begun in a job of this size; empty if it can."""
    if job_bytes + STEP_RECORD_BYTES <= MAX_JOB_BYTES:
        return ""
    return (
        f"step {key!r} cannot be kept: the job has {job_bytes} bytes, and with its steps it may "
        f"have {MAX_JOB_BYTES}"
    )


def why_not_inline(key: str, size: int, *, inline: int, job_bytes: int) -> str:
    """Return why a result of this size cannot be kept in the job itself; empty if it can.

    `inline` is what the results take that are in it, `job_bytes` the size of the whole job.
    """
    what = f"the result of step {key!r} has {size} bytes"
    if size > MAX_STEP_BYTES:
        return f"{what}, a job keeps {MAX_STEP_BYTES} of one step"
    if inline + size > MAX_INLINE_STEP_BYTES:
        return (
            f"{what}, those of the steps before it {inline}, and a job keeps "
            f"{MAX_INLINE_STEP_BYTES} of all steps"
        )
    if job_bytes + size + STEP_RECORD_BYTES > MAX_JOB_BYTES:
        return (
            f"{what}, the job {job_bytes} without it, and with its steps it may have "
            f"{MAX_JOB_BYTES}"
        )
    return ""
