"""When an array's status is written, when chunks are read before that, and when the array goes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.arrays.observed import GONE, ArrayGate, ChunkJob, ChunkOutcome
from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.lifecycle.arrays.state import ArrayState
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import JOB_KIND
from asyncjob_operator.core.arrays.decide import CREATE_BATCH, decide_array
from asyncjob_operator.core.arrays.snapshot import (
    ArrayDecision,
    ArrayEffect,
    CancelArray,
    DeleteArray,
    DeleteChunks,
    ReadChunks,
    WriteArrayStatus,
)
from asyncjob_operator.core.decision import CancelCascades, DependencyMissing
from asyncjob_operator.core.dependencies import RelatedJob
from support.objects.arrays import RUNNING, chunk, entry, outcome, ranges, snapshot, under_way
from support.objects.snapshots import at, stamp

ONE = under_way(entry(1))
ENDED = chunk(1, Phase.SUCCEEDED)
LARGE = {"payload": "x" * 40_000}


def written(effect: ArrayEffect | None) -> Mapping[str, Any]:
    """Return the fields of a write."""
    assert isinstance(effect, WriteArrayStatus)
    return effect.fields


@pytest.mark.parametrize(
    ("spec", "interval"), [({}, 0.5), (LARGE, 5.0)], ids=["small array", "large array"]
)
@pytest.mark.parametrize("written_at", [0.0, 10.0])
def test_between_two_writes_there_is_a_pause(spec: Any, interval: float, written_at: float) -> None:
    known = snapshot(ONE, ENDED, spec=spec, written_at=written_at)
    due = written_at + interval
    assert decide_array(known, at(due - 0.01)) == ArrayDecision(None, due)
    assert decide_array(known, at(due)) == ArrayDecision(ReadChunks((entry(1),)))
    read = replace(known, outcomes={"thumbs-1": outcome(1, done="0-9")})
    assert decide_array(read, at(due - 0.01)) == ArrayDecision(None, due)
    fields = written(decide_array(read, at(due)).effect)
    assert (fields["succeeded"], fields["percent"]) == (10, 10)


def test_an_array_that_this_operator_has_not_written_is_written_at_once() -> None:
    assert decide_array(snapshot(ONE, ENDED), at(0)) == ArrayDecision(ReadChunks((entry(1),)))
    created = decide_array(snapshot(ArrayState(total=100)), at(0)).effect
    assert isinstance(created, WriteArrayStatus)
    assert (created.policy, created.claims) == ("advance", True)


def test_an_array_of_which_there_is_nothing_to_write_waits_for_its_chunks() -> None:
    full = under_way(entry(1), entry(2), entry(3))
    jobs = (chunk(1), chunk(2), chunk(3))
    for written_at in (None, 0.0, 9.9):
        known = snapshot(full, *jobs, written_at=written_at)
        assert decide_array(known, at(10)) == ArrayDecision()


LIVE = DependencyMissing("ns", "fetch", JOB_KIND)
FAILS = ArrayGate(ArrayReason.DEPENDENCY_FAILED, "cannot start")


@pytest.mark.parametrize(
    ("state", "known", "confirms"),
    [
        (ArrayState(), {}, True),
        (ArrayState(), {"gate": FAILS}, True),
        (ArrayState(), {"spec": {"suspend": True}}, False),
        (ONE, {}, False),
        (ONE, {"spec": {"suspend": True}}, False),
    ],
    ids=[
        "it starts",
        "it fails for a dependency",
        "it is suspended before its start",
        "it goes on",
        "it is suspended later",
    ],
)
def test_what_live_reads_have_to_confirm_goes_with_the_write_that_starts_or_fails_it(
    state: ArrayState, known: dict[str, Any], confirms: bool
) -> None:
    effect = decide_array(snapshot(state, chunk(1), start_precondition=LIVE, **known), at(0)).effect
    assert isinstance(effect, WriteArrayStatus)
    assert effect.precondition == (LIVE if confirms else None)


def test_chunks_are_seen_to_while_the_next_write_is_not_due() -> None:
    counted = chunk(9)
    known = snapshot(ONE, ENDED, counted, written_at=10.0)
    assert decide_array(known, at(10.1)) == ArrayDecision(DeleteChunks((counted,)), 10.5)


@pytest.mark.parametrize(
    ("job", "is_read"),
    [
        (chunk(1), False),
        (chunk(1, Phase.QUEUED), False),
        (chunk(1, Phase.SUCCEEDED), True),
        (chunk(1, Phase.DEAD_LETTER), True),
        (chunk(1, uid="uid-other"), True),
        (None, True),
    ],
    ids=["running", "queued", "succeeded", "dead letter", "another one of its name", "gone"],
)
def test_a_chunk_is_read_once_it_has_ended_or_is_gone(job: ChunkJob | None, is_read: bool) -> None:
    full = replace(ONE, next=100)
    effect = decide_array(snapshot(full, *([job] if job else [])), at(0)).effect
    assert isinstance(effect, ReadChunks) is is_read


def test_those_that_do_not_exist_or_were_read_are_passed_over() -> None:
    full = replace(
        under_way(entry(1, uid=""), entry(2), entry(3), entry(4, uid=""), entry(5)), next=100
    )
    known = snapshot(full, created={"thumbs-1": GONE, "thumbs-4": "uid-4"}, gone={"thumbs-2": None})
    assert decide_array(known, at(0)).effect == ReadChunks((entry(3), entry(4, uid=""), entry(5)))


def test_so_many_chunks_are_read_at_a_time() -> None:
    entries = [entry(number) for number in range(1, CREATE_BATCH + 2)]
    known = snapshot(under_way(*entries), spec={"parallelism": 100})
    assert decide_array(known, at(0)).effect == ReadChunks(tuple(entries[:50]))


def test_the_uid_of_a_chunk_that_was_created_is_noted() -> None:
    reserved = replace(under_way(entry(1), entry(2, uid=""), entry(3)), next=100)
    jobs = (chunk(1), chunk(2), chunk(3))
    effect = decide_array(snapshot(reserved, *jobs, created={"thumbs-2": "uid-2"}), at(0)).effect
    fields = written(effect)
    assert [one["uid"] for one in fields["open"]] == ["uid-1", "uid-2", "uid-3"]
    assert set(fields) == {"open"}


@pytest.mark.parametrize(
    "read",
    [None, replace(outcome(1, done="0-9"), uid="uid-other")],
    ids=["it is gone", "it is another one of its name"],
)
def test_the_items_of_a_chunk_that_a_read_does_not_find_are_run_again(
    read: ChunkOutcome | None,
) -> None:
    known = snapshot(ONE, gone={"thumbs-1": read}, spec={"suspend": True})
    fields = written(decide_array(known, at(0)).effect)
    assert (fields["requeued"], fields["open"]) == ("0-9", None)


def test_a_chunk_that_a_read_shows_to_be_still_at_work_is_left_alone() -> None:
    still = outcome(1, Phase.RUNNING)
    known = snapshot(replace(ONE, next=100), ENDED, outcomes=[still])
    assert decide_array(known, at(0)) == ArrayDecision()


FAILED = replace(
    RUNNING,
    phase=ArrayPhase.FAILED,
    reason=ArrayReason.ITEMS_FAILED,
    message="1 of 100 items have failed",
    next=100,
    succeeded=99,
    failed_items=ranges("3"),
    completion_time=stamp(0),
    redrives=1,
)


@pytest.mark.parametrize(
    ("state", "redrive", "again"),
    [
        (FAILED, 2, True),
        (FAILED, 1, False),
        (FAILED, 0, False),
        (replace(FAILED, phase=ArrayPhase.SUCCEEDED), 2, False),
        (replace(FAILED, phase=ArrayPhase.CANCELLED), 2, False),
    ],
    ids=["asked once more", "acted on", "set back", "succeeded", "cancelled"],
)
def test_a_failed_array_is_redriven_when_it_is_asked_once_more(
    state: ArrayState, redrive: int, again: bool
) -> None:
    effect = decide_array(snapshot(state, spec={"redrive": redrive}), at(0)).effect
    if not again:
        assert effect is None
        return
    assert isinstance(effect, WriteArrayStatus)
    assert effect.policy == "redrive"
    assert effect.fields == {
        "phase": "Running",
        "reason": "Redriven",
        "message": "1 item is run again",
        "requeued": "3",
        "failedItems": None,
        "failed": 0,
        "percent": 99,
        "redrives": 2,
        "completionTime": None,
        "conditions": None,
    }


def test_a_refused_redrive_leaves_the_condition_that_says_why_the_array_failed() -> None:
    state = replace(FAILED, failed_unlisted=1)
    fields = written(decide_array(snapshot(state, spec={"redrive": 2}), at(0)).effect)
    assert set(fields) == {"reason", "message", "redrives"}
    assert fields["reason"] == "RedriveRefused"


@pytest.mark.parametrize(
    ("now", "decision"),
    [
        (0, ArrayDecision(None, 60.0)),
        (240, ArrayDecision(None, 300.0)),
        (241, ArrayDecision(None, 300.0)),
        (299, ArrayDecision(None, 300.0)),
        (300, ArrayDecision(DeleteArray())),
        (900, ArrayDecision(DeleteArray())),
    ],
)
def test_an_array_is_deleted_300_seconds_after_its_end(now: float, decision: ArrayDecision) -> None:
    """Until then the wall clock is looked at once a minute: somebody may set it."""
    known = snapshot(FAILED, spec={"ttlSecondsAfterFinished": 300, "redrive": 1})
    assert decide_array(known, at(now)) == decision


def test_an_array_is_kept_while_the_job_that_has_submitted_it_may_ask_how_it_ended() -> None:
    known = snapshot(FAILED, spec={"ttlSecondsAfterFinished": 300})
    waiting = replace(known, has_open_parent=True)
    assert decide_array(waiting, at(900)) == ArrayDecision(None, 960.0)
    assert decide_array(replace(waiting, has_open_parent=False), at(900)).effect == DeleteArray()


def test_an_array_is_kept_while_something_depends_on_it() -> None:
    known = snapshot(FAILED, spec={"ttlSecondsAfterFinished": 300})
    assert decide_array(replace(known, is_needed=True), at(900)) == ArrayDecision(None, 960.0)


CANCELLED = RelatedJob("ns", "parent", "uid-parent", Phase.CANCELLED, cascades_cancel=True)


@pytest.mark.parametrize("state", [ArrayState(), RUNNING, replace(RUNNING, open=())])
def test_an_array_is_cancelled_with_its_parent_once(state: ArrayState) -> None:
    known = replace(snapshot(state), cancelled_with=CANCELLED)
    assert decide_array(known, at(0)) == ArrayDecision(CancelArray(CancelCascades(CANCELLED)))
    asked = replace(snapshot(state, spec={"cancel": True}), cancelled_with=CANCELLED)
    assert not isinstance(decide_array(asked, at(0)).effect, CancelArray)


def test_an_array_that_has_ended_is_not_cancelled() -> None:
    known = replace(snapshot(FAILED), cancelled_with=CANCELLED)
    assert decide_array(known, at(0)) == ArrayDecision()


def test_an_array_without_a_time_to_live_or_an_end_is_kept() -> None:
    assert decide_array(snapshot(FAILED), at(10**6)) == ArrayDecision()
    endless = replace(FAILED, completion_time=None)
    known = snapshot(endless, spec={"ttlSecondsAfterFinished": 0})
    assert decide_array(known, at(10**6)) == ArrayDecision()


def test_the_chunks_of_an_array_that_has_ended_go_before_it() -> None:
    known = snapshot(FAILED, ENDED, spec={"ttlSecondsAfterFinished": 0})
    assert decide_array(known, at(0)) == ArrayDecision(DeleteChunks((ENDED,)))
    gone = snapshot(FAILED, replace(ENDED, deleting=True), spec={"ttlSecondsAfterFinished": 0})
    assert decide_array(gone, at(0)) == ArrayDecision()
