"""What a live read of a chunk's job tells: which items are done, and why the others are not."""

from typing import Any

import pytest

from asyncjob.lifecycle.arrays.chunk_jobs import read_outcome
from asyncjob.lifecycle.arrays.chunks import ChunkReport, ItemError
from asyncjob.lifecycle.arrays.item_index import ItemIndex
from asyncjob.lifecycle.arrays.observed import ChunkOutcome
from asyncjob.lifecycle.arrays.state import OpenChunkEntry
from asyncjob.lifecycle.phases import Phase
from support.objects.arrays import entry, ranges

ENTRY = entry(2)  # items 10-19
INDEX_JOB = OpenChunkEntry("thumbs-1", ranges(""), 1, "uid-1")
ERROR = ItemError(19, "ValueError", "Internal", "no")
BY_RESULT = ChunkReport(ranges("10-18"), ranges("19"), (ERROR,))
BY_CHECKPOINT = ChunkReport(ranges("10-13"))
INDEX = ItemIndex(2, 20, "v1", 1000, (0,))


def read(entry: OpenChunkEntry = ENTRY, **status: Any) -> ChunkOutcome:
    """Return what a live read of a job with this status tells."""
    return read_outcome({"metadata": {"uid": "uid-1"}, "status": status}, entry)


def test_a_chunk_that_has_died_tells_why_and_what_it_had_done_until_then() -> None:
    error = {"type": "WorkerCrashed", "category": "Crash", "message": "exit code 137"}
    outcome = read(
        phase="DeadLetter",
        reason="CrashBudgetExhausted",
        message="4 workers died",
        error=error,
        checkpoint=BY_CHECKPOINT.checkpoint(ENTRY.items),
    )
    assert outcome == ChunkOutcome(
        uid="uid-1",
        finished=True,
        phase=Phase.DEAD_LETTER,
        reason="CrashBudgetExhausted",
        error_type="WorkerCrashed",
        error_category="Crash",
        message="4 workers died",
        report=BY_CHECKPOINT,
    )


STORED: dict[str, Any] = {
    "result": BY_RESULT.result(),
    "checkpoint": BY_CHECKPOINT.checkpoint(ENTRY.items),
}


@pytest.mark.parametrize(
    ("phase", "has", "report", "elsewhere"),
    [
        ("Succeeded", ("result", "checkpoint"), BY_RESULT, False),
        ("Succeeded", ("checkpoint",), BY_CHECKPOINT, True),
        ("Succeeded", (), ChunkReport(), True),
        ("DeadLetter", ("checkpoint",), BY_CHECKPOINT, False),
        ("DeadLetter", ("result", "checkpoint"), BY_CHECKPOINT, False),
        ("Cancelled", ("checkpoint",), BY_CHECKPOINT, False),
        ("Running", ("checkpoint",), ChunkReport(), False),
        ("Retrying", ("checkpoint",), ChunkReport(), False),
    ],
    ids=[
        "succeeded: its result",
        "succeeded with an offloaded result: its last checkpoint",
        "succeeded with an offloaded result and no checkpoint: nothing",
        "dead letter: its last checkpoint",
        "dead letter with a result that somebody has written: its last checkpoint",
        "cancelled: its last checkpoint",
        "running: nothing counts yet",
        "retrying: nothing counts yet",
    ],
)
def test_the_items_of_a_chunk_are_read_from(
    phase: str, has: tuple[str, ...], report: ChunkReport, elsewhere: bool
) -> None:
    status = {name: STORED[name] for name in has}
    outcome = read(phase=phase, **status)
    assert (outcome.report, outcome.result_elsewhere) == (report, elsewhere)
    assert outcome.index is None


@pytest.mark.parametrize(
    ("phase", "field", "index"),
    [
        ("Succeeded", "result", INDEX),
        ("Succeeded", "checkpoint", INDEX),
        ("DeadLetter", "result", None),
        ("Running", "result", None),
    ],
    ids=["its result", "its checkpoint where that is offloaded", "dead letter", "running"],
)
def test_an_index_job_tells_of_the_file_once_it_has_succeeded(
    phase: str, field: str, index: ItemIndex | None
) -> None:
    outcome = read(INDEX_JOB, phase=phase, **{field: INDEX.to_json()})
    assert (outcome.index, outcome.report) == (index, ChunkReport())


def test_an_index_that_cannot_be_understood_is_none() -> None:
    assert read(INDEX_JOB, phase="Succeeded", result={"records": 2}).index is None
    assert read(INDEX_JOB, phase="Succeeded", result="done").index is None


@pytest.mark.parametrize(
    ("error_type", "message"),
    [
        ("ItemsUnreadable", "row 7 has no end"),
        ("StoreUnavailableError", "row 7 has no end"),
        ("ResultsNotStored", "row 7 has no end"),
        ("ResultsRefused", "row 7 has no end"),
        ("ValueError", "3 attempts failed"),
    ],
)
def test_where_a_store_is_to_blame_its_error_is_the_message(error_type: str, message: str) -> None:
    error = {"type": error_type, "category": "Internal", "message": "row 7 has no end"}
    outcome = read(phase="DeadLetter", message="3 attempts failed", error=error)
    assert outcome.message == message
