"""Policies about jobs that no worker holds."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.job_view import DependencyView
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob_operator.core.decision import Admit, CancelDeleted, ChangePhase, UpdateWaitReason
from asyncjob_operator.core.dependencies import Dependencies, DependencyState
from asyncjob_operator.core.options import QueueLimits, QueueView, StartRateLimit
from asyncjob_operator.core.snapshot import observe
from support.objects.snapshots import at, job, judged, moved, seen, stamp

WAITING = (Phase.QUEUED, Phase.PENDING, Phase.SCHEDULED, Phase.RETRYING)


def test_a_plain_queued_job_asks_for_nothing_but_a_look_at_its_queue_timeout() -> None:
    decision = judged(seen(job()), at(0))
    assert decision.effect is None
    assert decision.requeue_at == 7200


def test_a_job_for_which_nothing_is_to_be_done_awaits_no_reservation() -> None:
    decision = judged(seen(job(Phase.SUCCEEDED)), at(0))
    assert (decision.effect, decision.awaits_reservation) == (None, False)


@pytest.mark.parametrize("phase", WAITING)
def test_a_waiting_job_is_cancelled_at_once(phase: Phase) -> None:
    snapshot = seen(job(phase, spec={"cancel": True}))
    assert moved(snapshot, at(0)) == ("Cancelled", "CancelRequested")


def test_a_cancelled_job_says_who_has_cancelled_it() -> None:
    effect = judged(seen(job(spec={"cancel": True})), at(0)).effect
    assert isinstance(effect, ChangePhase)
    assert effect.change.history_entry is not None
    assert effect.change.history_entry["message"] == "cancelled by spec.cancel"


@pytest.mark.parametrize("ahead", [0.001, 1.0])
def test_a_job_waits_for_its_start_time_to_the_last_moment(ahead: float) -> None:
    snapshot = seen(job(spec={"notBefore": stamp(30)}))
    assert moved(snapshot, at(30 - ahead)) == ("Scheduled", "NotBefore")
    assert moved(snapshot, at(30)) is None


def test_a_deadline_cancels_a_job_that_was_never_claimed() -> None:
    snapshot = seen(job(spec={"notAfter": stamp(30)}, admitted=True))
    assert moved(snapshot, at(29)) is None
    assert judged(snapshot, at(29)).requeue_at == 30
    assert moved(snapshot, at(30)) == ("Cancelled", "DeadlineExceeded")


def test_a_job_with_a_deadline_ahead_is_let_through_and_one_behind_it_never() -> None:
    snapshot = seen(job(spec={"notAfter": stamp(30)}))
    assert isinstance(judged(snapshot, at(29)).effect, Admit)
    assert moved(snapshot, at(30)) == ("Cancelled", "DeadlineExceeded")
    unadmitted = seen(job(Phase.PENDING, reason="Suspended", spec={"notAfter": stamp(30)}))
    assert moved(unadmitted, at(30)) == ("Cancelled", "DeadlineExceeded")


def test_a_job_that_has_started_is_let_through_again_after_its_deadline() -> None:
    released = seen(job(attempt=1, releases=1, spec={"notAfter": stamp(30)}))
    assert isinstance(judged(released, at(31)).effect, Admit)
    retrying = seen(job(Phase.RETRYING, spec={"notAfter": stamp(1)}))
    effect = judged(retrying, at(31)).effect
    assert isinstance(effect, ChangePhase)
    assert effect.change.fields["admitted"] is True


def test_a_deadline_means_nothing_to_a_job_that_has_started() -> None:
    snapshot = seen(job(attempt=1, releases=1, spec={"notAfter": stamp(30)}))
    assert moved(snapshot, at(31)) is None


def test_a_calendar_time_far_ahead_is_looked_at_again_within_a_minute() -> None:
    snapshot = seen(job(Phase.SCHEDULED, spec={"notBefore": stamp(86400)}))
    assert judged(snapshot, at(100)).requeue_at == 160


def test_a_job_with_a_start_time_ahead_is_scheduled() -> None:
    snapshot = seen(job(spec={"notBefore": stamp(10)}))
    assert moved(snapshot, at(0)) == ("Scheduled", "NotBefore")


def test_a_scheduled_job_is_queued_and_admitted_at_its_time() -> None:
    snapshot = seen(job(Phase.SCHEDULED, spec={"notBefore": stamp(10)}))
    assert judged(snapshot, at(4)).requeue_at == 10
    effect = judged(snapshot, at(10)).effect
    assert isinstance(effect, ChangePhase)
    assert effect.change.fields["admitted"] is True


def test_a_scheduled_job_that_is_suspended_meanwhile_is_queued_without_being_admitted() -> None:
    snapshot = seen(job(Phase.SCHEDULED, spec={"notBefore": stamp(10), "suspend": True}))
    effect = judged(snapshot, at(10)).effect
    assert isinstance(effect, ChangePhase)
    assert effect.change.fields["admitted"] is None


def test_a_gated_job_whose_gates_are_open_is_admitted_in_place() -> None:
    snapshot = seen(job(spec={"notBefore": stamp(-1)}))
    assert judged(snapshot, at(0)).effect == Admit("admit")


def test_an_admitted_job_that_is_suspended_loses_its_admission() -> None:
    snapshot = seen(job(admitted=True, spec={"notBefore": stamp(-1), "suspend": True}))
    effect = judged(snapshot, at(0)).effect
    assert isinstance(effect, ChangePhase)
    assert effect.change.target is Phase.PENDING
    assert effect.change.fields["admitted"] is None


def test_a_resumed_job_is_queued() -> None:
    snapshot = seen(job(Phase.PENDING, reason="Suspended"))
    assert moved(snapshot, at(0)) == ("Queued", "GateOpened")


def test_a_resumed_job_that_still_waits_for_another_says_so_in_place() -> None:
    waiting = job(Phase.PENDING, reason="Suspended", spec={"dependsOn": [{"name": "other"}]})
    ties = Dependencies(states=(DependencyState(DependencyView("other")),))
    effect = judged(replace(seen(waiting), dependencies=ties), at(0)).effect
    assert isinstance(effect, UpdateWaitReason)
    assert effect.reason == "WaitingForDependency"


def test_a_retrying_job_is_queued_after_its_delay_from_first_sight() -> None:
    snapshot = seen(job(Phase.RETRYING, retryDelaySeconds=5.0), first=100)
    assert judged(snapshot, at(104)).requeue_at == 105
    assert moved(snapshot, at(105)) == ("Queued", "BackoffElapsed")


def test_a_queue_timeout_makes_a_dead_letter() -> None:
    snapshot = seen(job(spec={"queueTimeoutSeconds": 5}), first=100)
    assert moved(snapshot, at(104)) is None
    assert moved(snapshot, at(105)) == ("DeadLetter", "QueueTimeout")


@pytest.mark.parametrize("counter", ["retries", "crashes", "releases"])
def test_a_job_that_has_run_since_its_redrive_has_no_queue_timeout(counter: str) -> None:
    changes: dict[str, Any] = {counter: 1, "spec": {"queueTimeoutSeconds": 5}}
    snapshot = seen(job(attempt=1, **changes))
    assert moved(snapshot, at(100)) is None


def test_the_queues_default_stands_in_for_a_queue_timeout_of_ones_own() -> None:
    snapshot = seen(job(), queue=QueueView(queue_timeout_seconds=3))
    assert moved(snapshot, at(3)) == ("DeadLetter", "QueueTimeout")


def test_a_paused_queue_times_nobody_out() -> None:
    queue = QueueView(paused=True)
    assert moved(seen(job(spec={"queueTimeoutSeconds": 5}), queue=queue), at(1000)) is None


def test_a_job_that_waits_for_its_gate_has_no_queue_timeout() -> None:
    gated = job(Phase.PENDING, reason="Suspended", spec={"suspend": True, "queueTimeoutSeconds": 1})
    decision = judged(seen(gated), at(1000))
    assert (decision.effect, decision.requeue_at) == (None, None)


@pytest.mark.parametrize("phase", [Phase.QUEUED, Phase.PENDING, Phase.SCHEDULED, Phase.RETRYING])
def test_a_waiting_job_that_is_being_deleted_is_cancelled_and_nothing_else(phase: Phase) -> None:
    spec = {"redrive": 1, "rerun": 1, "suspend": True, "notAfter": stamp(-1)}
    leaving = replace(job(phase, spec=spec), deleting=True)
    assert judged(seen(leaving), at(0)).effect == CancelDeleted("deletion")
    requested = replace(job(phase, spec={**spec, "cancel": True}), deleting=True)
    assert moved(seen(requested), at(0)) == ("Cancelled", "CancelRequested")


@pytest.mark.parametrize("phase", sorted(FINISHED_PHASES))
def test_a_finished_job_that_is_being_deleted_is_left_alone(phase: Phase) -> None:
    leaving = replace(job(phase, spec={"redrive": 1, "rerun": 1, "cancel": True}), deleting=True)
    assert judged(seen(leaving), at(0)).effect is None


def test_an_admitted_job_whose_type_nobody_lists_any_more_gives_its_place_back() -> None:
    limited = QueueView(limits=QueueLimits(max_concurrency=1))
    view = job(admitted=True)
    first = observe(None, view, limited, at(0), just_changed=True, type_known=True)
    lost = observe(first, view, limited, at(10), just_changed=True, type_known=False)
    snapshot = replace(
        seen(view, queue=limited), observation=lost, has_reservation=True, type_known=False
    )
    assert judged(snapshot, at(69)).requeue_at == 70
    assert moved(snapshot, at(69)) is None
    assert moved(snapshot, at(70)) == ("Pending", "ConcurrencyLimit")
    back = observe(lost, view, limited, at(60), just_changed=True, type_known=True)
    assert moved(replace(snapshot, observation=back, type_known=True), at(100)) is None
    waiting = replace(
        snapshot,
        job=job(),
        observation=replace(lost, phase_entry=first.phase_entry),
        has_reservation=False,
    )
    assert moved(waiting, at(100)) is None, "who was not admitted holds nothing"


def test_a_job_admitted_before_its_queue_had_a_limit_has_to_get_a_place() -> None:
    snapshot = seen(job(admitted=True, spec={"notBefore": stamp(-1)}))
    limited = replace(snapshot, queue=QueueView(limits=QueueLimits(max_concurrency=2)))
    assert moved(limited, at(0)) == ("Pending", "ConcurrencyLimit")
    assert moved(replace(limited, has_reservation=True), at(0)) is None
    paced = replace(snapshot, queue=QueueView(limits=QueueLimits(rate_limit=StartRateLimit(1, 1))))
    assert moved(paced, at(0)) is None
    pending = seen(job(Phase.PENDING, reason="ConcurrencyLimit"))
    effect = judged(replace(pending, queue=limited.queue), at(0)).effect
    assert isinstance(effect, ChangePhase)
    assert effect.change.target is Phase.QUEUED
    assert effect.change.fields["admitted"] is None
