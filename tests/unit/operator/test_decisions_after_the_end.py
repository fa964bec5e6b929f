"""Policies about what people ask for once a job has ended."""

from dataclasses import replace

import pytest

from asyncjob.lifecycle.derived_jobs import rerun_name
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import MAX_NAME_LENGTH
from asyncjob_operator.core.decision import (
    Admit,
    ChangePhase,
    CreateRerun,
    DuplicateStillLive,
    NoLiveDuplicate,
    RedriveRefusal,
    RefuseRedrive,
)
from asyncjob_operator.core.policies.deduplication import takes_precedence
from support.objects.snapshots import at, job, judged, moved, seen, stamp

DEDUP = {"deduplicationId": "one"}


def test_a_dead_letter_is_dismissed_by_cancel_even_if_it_is_to_be_redriven() -> None:
    snapshot = seen(job(Phase.DEAD_LETTER, spec={"cancel": True, "redrive": 1}))
    assert moved(snapshot, at(0)) == ("Cancelled", "Dismissed")


def test_a_redrive_acts_once_however_far_it_was_raised() -> None:
    effect = judged(seen(job(Phase.DEAD_LETTER, spec={"redrive": 5})), at(0)).effect
    assert isinstance(effect, ChangePhase)
    assert effect.change.fields["redrives"] == 5
    done = job(Phase.DEAD_LETTER, redrives=5, spec={"redrive": 5})
    assert judged(seen(done), at(0)).effect is None


def test_a_redrive_is_refused_while_another_live_job_has_its_id() -> None:
    dead = job(Phase.DEAD_LETTER, spec={**DEDUP, "redrive": 1})
    other = job(Phase.RUNNING, "other", spec=DEDUP)
    effect = judged(seen(dead, others=(other,)), at(0)).effect
    assert isinstance(effect, RefuseRedrive)
    assert effect.precondition == DuplicateStillLive("ns", "other", "uid-other")


def test_a_redrive_is_not_refused_for_a_finished_jobs_sake() -> None:
    dead = job(Phase.DEAD_LETTER, spec={**DEDUP, "redrive": 1})
    other = job(Phase.SUCCEEDED, "other", spec=DEDUP)
    assert moved(seen(dead, others=(other,)), at(0)) == ("Queued", "Redriven")


@pytest.mark.parametrize("phase", list(Phase))
def test_a_rerun_is_created_from_a_job_in_any_phase(phase: Phase) -> None:
    spec: dict[str, object] = {"rerun": 2}
    if phase is Phase.PENDING:
        spec["suspend"] = True
    if phase is Phase.SCHEDULED:
        spec["notBefore"] = stamp(60)
    snapshot = seen(job(phase, reason="Suspended", spec=spec))
    assert judged(snapshot, at(0)).effect == CreateRerun("rerun", 2, "job-r2")


def test_a_rerun_already_acknowledged_is_not_made_again() -> None:
    assert judged(seen(job(Phase.SUCCEEDED, reruns=2, spec={"rerun": 2})), at(0)).effect is None


def test_a_name_too_long_for_its_suffix_is_cut_and_told_apart() -> None:
    long, other = "a" * MAX_NAME_LENGTH, "a" * (MAX_NAME_LENGTH - 1) + "b"
    assert len(rerun_name(long, 12)) <= MAX_NAME_LENGTH
    assert rerun_name(long, 12) != rerun_name(other, 12)
    assert rerun_name(long, 12).endswith("-r12")


def test_the_older_of_two_holders_of_an_id_is_admitted_and_the_other_cancelled() -> None:
    first, second = job(name="a", spec=DEDUP), job(name="b", spec=DEDUP)
    assert moved(seen(second, others=(first,)), at(0)) == ("Cancelled", "Duplicate")
    assert moved(seen(first, others=(second,)), at(0)) is None


def test_who_was_let_through_before_an_older_job_was_redriven_keeps_the_id() -> None:
    redriven = job(name="a", attempt=1, reason="Redriven", spec=DEDUP)
    admitted = job(name="b", admitted=True, spec=DEDUP)
    retrying = job(Phase.RETRYING, "c", spec=DEDUP)
    for holder in (admitted, retrying):
        assert moved(seen(redriven, others=(holder,)), at(0)) == ("Cancelled", "Duplicate")
        assert moved(seen(holder, others=(redriven,)), at(0)) is None


def test_nobody_is_admitted_beside_another_live_holder_not_even_who_has_the_id() -> None:
    first, second = job(name="a", spec=DEDUP), job(name="b", spec=DEDUP)
    assert judged(seen(first, others=(second,)), at(0)).effect is None
    alone = NoLiveDuplicate("ns", "uid-a", "one")
    assert judged(seen(first), at(0)).effect == Admit("admit", alone)
    scheduled = job(Phase.SCHEDULED, "a", spec={**DEDUP, "notBefore": stamp(0)})
    effect = judged(seen(scheduled, others=(second,)), at(1)).effect
    assert isinstance(effect, ChangePhase)
    assert effect.change.fields["admitted"] is None


def test_a_rerun_that_cannot_be_created_holds_no_redrive_up() -> None:
    dead = seen(job(Phase.DEAD_LETTER, spec={"redrive": 1, "rerun": 1}))
    assert moved(dead, at(0)) == ("Queued", "Redriven")
    held = replace(dead, job=job(Phase.SUCCEEDED, spec={"rerun": 1}), rerun_retry_at=30.0)
    assert judged(held, at(29)).effect is None
    assert judged(held, at(29)).requeue_at == 30.0
    assert judged(held, at(30)).effect == CreateRerun("rerun", 1, "job-r1")


def test_a_redrive_refused_and_said_so_holds_no_rerun_up() -> None:
    competitor = job(Phase.RUNNING, "competitor", spec={"deduplicationId": "d"})
    spec = {"redrive": 1, "rerun": 1, "deduplicationId": "d"}
    dead = seen(job(Phase.DEAD_LETTER, spec=spec), others=(competitor,))
    assert isinstance(judged(dead, at(0)).effect, RefuseRedrive)
    assert isinstance(
        judged(replace(dead, refused_redrive=(1, RedriveRefusal.DUPLICATE)), at(0)).effect,
        CreateRerun,
    )
    free = replace(dead, refused_redrive=(1, RedriveRefusal.DUPLICATE), live_duplicate=None)
    assert moved(free, at(0)) == ("Queued", "Redriven")


def test_no_job_takes_precedence_over_itself() -> None:
    assert not takes_precedence(job(), job())
