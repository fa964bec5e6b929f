"""What an array's chunks are told when it is cancelled, suspended, resumed or gone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.arrays.advance import due_control
from asyncjob.lifecycle.arrays.observed import ChunkJob
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.arrays.decide import CREATE_BATCH, decide_array, decide_orphans
from asyncjob_operator.core.arrays.snapshot import (
    ArrayEffect,
    ControlChunks,
    DeleteChunks,
)
from support.objects.arrays import chunk, entry, snapshot, under_way
from support.objects.snapshots import at

QUEUED, RUNNING, RETRYING = Phase.QUEUED, Phase.RUNNING, Phase.RETRYING


def told(*chunks: ChunkJob, **spec: Any) -> ArrayEffect | None:
    """Return what is done about these chunks; the next write is not due yet."""
    listed = under_way(*(entry(number) for number in range(1, 4)), next=100)
    return decide_array(snapshot(listed, *chunks, spec=spec, written_at=0.0), at(0.1)).effect


@pytest.mark.parametrize(
    ("job", "is_told"),
    [
        (chunk(1, QUEUED), True),
        (chunk(1, RUNNING), True),
        (chunk(1, RUNNING, suspended=True), True),
        (chunk(1, RUNNING, cancel_requested=True), False),
        (chunk(1, RUNNING, deleting=True), False),
        (chunk(1, Phase.SUCCEEDED), False),
    ],
    ids=["queued", "running", "suspended", "told already", "being deleted", "finished"],
)
def test_a_cancelled_array_cancels_each_chunk_once(job: ChunkJob, is_told: bool) -> None:
    expected = ControlChunks((job, chunk(2)), {"cancel": True})
    assert told(job, chunk(2), cancel=True) == (
        expected if is_told else replace(expected, chunks=(chunk(2),))
    )
    assert told(job, cancel=True) == (ControlChunks((job,), {"cancel": True}) if is_told else None)


@pytest.mark.parametrize(
    ("job", "suspend", "is_told"),
    [
        (chunk(1, QUEUED), True, True),
        (chunk(1, RETRYING), True, True),
        (chunk(1, RUNNING), True, False),
        (chunk(1, QUEUED, suspended=True), True, False),
        (chunk(1, QUEUED, deleting=True), True, False),
        (chunk(1, Phase.SUCCEEDED), True, False),
        (chunk(1, QUEUED, suspended=True), False, True),
        (chunk(1, RUNNING, suspended=True), False, True),
        (chunk(1, QUEUED), False, False),
        (chunk(1, RUNNING), False, False),
        (chunk(1, QUEUED, suspended=True, deleting=True), False, False),
        (chunk(1, Phase.CANCELLED, suspended=True), False, False),
    ],
    ids=[
        "suspend a queued one",
        "suspend one between attempts",
        "a running one goes on",
        "it is suspended already",
        "it is being deleted",
        "it has finished",
        "resume a queued one",
        "resume one that began meanwhile",
        "it may be claimed already",
        "it runs already",
        "resume none that is being deleted",
        "resume none that has finished",
    ],
)
def test_chunks_that_wait_are_suspended_and_resumed_with_their_array(
    job: ChunkJob, suspend: bool, is_told: bool
) -> None:
    expected = ControlChunks((job,), {"suspend": suspend}) if is_told else None
    assert told(job, suspend=suspend) == expected


def test_no_chunk_is_told_anything_by_an_array_without_chunks() -> None:
    assert due_control(snapshot(under_way())) == ((), {"suspend": False})
    assert due_control(snapshot(under_way(), spec={"cancel": True})) == ((), {"cancel": True})


def test_chunks_that_are_counted_are_deleted_once_the_others_are_told() -> None:
    counted = chunk(9, Phase.SUCCEEDED)
    assert told(chunk(1), counted) == DeleteChunks((counted,))
    assert told(chunk(1), counted, cancel=True) == ControlChunks((chunk(1),), {"cancel": True})
    assert told(chunk(1, cancel_requested=True), counted, cancel=True) == DeleteChunks((counted,))
    assert told(chunk(1), replace(counted, deleting=True)) is None


@pytest.mark.parametrize(
    ("job", "deleted"),
    [(chunk(1), False), (chunk(1, uid="uid-other"), True), (chunk(9), True)],
    ids=["listed", "another one of a listed name", "of a name that is not listed"],
)
def test_what_the_array_does_not_list_is_deleted(job: ChunkJob, deleted: bool) -> None:
    assert told(job) == (DeleteChunks((job,)) if deleted else None)


def test_one_that_may_be_the_reserved_chunk_is_not_deleted() -> None:
    reserved = under_way(entry(1, uid=""))
    assert snapshot(reserved, chunk(1)).unlisted == ()
    created = snapshot(reserved, chunk(1), created={"thumbs-1": "uid-other"})
    assert created.unlisted == (chunk(1),)


def numbered(phase: Phase) -> list[ChunkJob]:
    """Return one chunk more than are looked after at a time."""
    return [chunk(number, phase) for number in range(10, CREATE_BATCH + 11)]


def test_so_many_chunks_are_deleted_at_a_time() -> None:
    many = numbered(Phase.SUCCEEDED)
    assert told(*many) == DeleteChunks(tuple(many[:50]))


def orphans(chunks: Sequence[ChunkJob]) -> ControlChunks | DeleteChunks | None:
    """Return what is due for the chunks of an array that is gone."""
    return decide_orphans({one.name: one for one in chunks})


def test_the_chunks_of_an_array_that_is_gone_are_cancelled_and_then_deleted() -> None:
    ended = chunk(1, Phase.CANCELLED)
    asked = chunk(2, cancel_requested=True)
    assert orphans([ended, asked, chunk(3)]) == ControlChunks((chunk(3),), {"cancel": True})
    assert orphans([ended, asked]) == DeleteChunks((ended,))
    assert orphans([asked]) is None
    assert orphans([]) is None


@pytest.mark.parametrize("phase", [RUNNING, Phase.SUCCEEDED])
def test_of_an_array_that_is_gone_foreign_jobs_and_those_that_go_are_left_alone(
    phase: Phase,
) -> None:
    assert orphans([chunk(1, phase, array="")]) is None
    assert orphans([chunk(1, phase, deleting=True)]) is None


def test_the_chunks_of_an_array_that_is_gone_are_looked_after_so_many_at_a_time() -> None:
    running, ended = numbered(RUNNING), numbered(Phase.SUCCEEDED)
    assert orphans(running) == ControlChunks(tuple(running[:50]), {"cancel": True})
    assert orphans(ended) == DeleteChunks(tuple(ended[:50]))
