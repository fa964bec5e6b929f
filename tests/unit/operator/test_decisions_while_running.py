"""Policies about jobs that a worker holds: dead leases, proofs of death, timeouts, cancels."""

from dataclasses import replace

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.policy import EffectivePolicy
from asyncjob_operator.core.decision import (
    ChangePhase,
    ContainerDown,
    PodGone,
    WorkerReplaced,
)
from asyncjob_operator.core.liveness import ContainerTermination, HolderStatus
from asyncjob_operator.core.now import to_epoch
from asyncjob_operator.core.options import DecisionOptions, QueueView
from asyncjob_operator.core.snapshot import Snapshot, observe
from support.objects.snapshots import (
    POD,
    POD_UID,
    WORKER,
    at,
    job,
    judged,
    moved,
    pod,
    running,
    seen,
    stamp,
)

ALIVE = HolderStatus(pods_known=True, pod=pod(), newest_worker=WORKER)


def ended(seconds: float, code: int = 137, *, again: bool = False) -> ContainerTermination:
    return ContainerTermination(
        float(int(to_epoch(stamp(seconds), default=0.0))), code, "Error", restarted=again
    )


def test_a_lease_expires_its_duration_and_a_margin_after_first_sight() -> None:
    snapshot = seen(job(Phase.RUNNING), first=100, options=DecisionOptions(lease_margin=2))
    assert judged(snapshot, at(161)).requeue_at == 162
    assert moved(snapshot, at(162)) == ("Queued", "LeaseExpired")


def test_a_renewal_starts_the_lease_again() -> None:
    snapshot = seen(job(Phase.RUNNING), first=100)
    renewed = job(Phase.RUNNING, **running(renewals=1))
    observation = observe(snapshot.observation, renewed, snapshot.queue, at(150), just_changed=True)
    later = replace(snapshot, job=renewed, observation=observation)
    assert moved(later, at(163)) is None
    assert moved(later, at(150 + 62)) == ("Queued", "LeaseExpired")


def test_without_sight_of_pods_a_silent_worker_counts_as_crashed() -> None:
    snapshot = seen(job(Phase.RUNNING), holder=HolderStatus())
    assert moved(snapshot, at(62)) == ("Queued", "LeaseExpired")


def test_a_pod_that_is_gone_is_waited_out_and_then_confirmed() -> None:
    snapshot = seen(job(Phase.RUNNING), holder=HolderStatus(pods_known=True))
    assert moved(snapshot, at(61)) is None
    effect = judged(snapshot, at(62)).effect
    assert isinstance(effect, ChangePhase)
    assert effect.precondition == PodGone("ns", POD, POD_UID)
    assert moved(snapshot, at(62)) == ("Queued", "WorkerGone")


@pytest.mark.parametrize("fate", ["deleting", "disrupted"])
def test_a_pod_on_its_way_out_has_released_what_it_was_silent_about(fate: str) -> None:
    holder = HolderStatus(pods_known=True, pod=pod(**{fate: True}), newest_worker=WORKER)
    snapshot = seen(job(Phase.RUNNING), holder=holder)
    assert moved(snapshot, at(61)) is None
    assert moved(snapshot, at(62)) == ("Queued", "WorkerGone")


def test_a_pod_that_is_over_is_proof_whenever_it_ended() -> None:
    over = pod(terminated=True, termination=ended(-100, 1))
    holder = HolderStatus(pods_known=True, pod=over, newest_worker=WORKER)
    assert moved(seen(job(Phase.RUNNING), holder=holder), at(1)) == ("Queued", "WorkerCrashed")


def holder_of(ending: ContainerTermination) -> HolderStatus:
    return replace(ALIVE, pod=pod(termination=ending))


def test_a_container_that_is_down_is_proof_once_it_is_confirmed() -> None:
    snapshot = seen(job(Phase.RUNNING), first=5, holder=holder_of(ended(10)))
    effect = judged(snapshot, at(20)).effect
    assert isinstance(effect, ChangePhase)
    finished_at = to_epoch(stamp(10), default=0.0)
    assert effect.precondition == ContainerDown("ns", POD, POD_UID, finished_at, 137)
    assert moved(snapshot, at(20)) == ("Queued", "WorkerCrashed")


@pytest.mark.parametrize("ended_at", [-100, 4, 6])
def test_a_fresh_claim_gives_the_pod_time_to_say_that_it_runs_again(ended_at: float) -> None:
    snapshot = seen(job(Phase.RUNNING), first=5, holder=holder_of(ended(ended_at)))
    assert judged(snapshot, at(6)).requeue_at == 8
    assert moved(snapshot, at(8)) == ("Queued", "WorkerCrashed")


@pytest.mark.parametrize("ended_at", [-100, 4, 30])
def test_a_container_that_runs_again_proves_nothing_by_itself(ended_at: float) -> None:
    holder = holder_of(ended(ended_at, again=True))
    snapshot = seen(job(Phase.RUNNING), first=5, holder=holder)
    assert judged(snapshot, at(40)).requeue_at == 67
    assert moved(snapshot, at(67)) == ("Queued", "LeaseExpired")


@pytest.mark.parametrize("claimed_at", [30.9, 31.5])
@pytest.mark.parametrize("again", [False, True])
def test_the_ending_of_a_process_known_for_long_is_proof_however_fresh_the_claim(
    claimed_at: float, again: bool
) -> None:
    ending = holder_of(ended(30, again=again))
    holder = replace(ending, termination_shown_at=31, newest_worker_since=19)
    snapshot = seen(job(Phase.RUNNING), first=claimed_at, holder=holder)
    assert moved(snapshot, at(31.5)) == ("Queued", "WorkerCrashed")


@pytest.mark.parametrize(("since", "shown_at"), [(22, 31), (20, 31), (5, None)])
def test_a_process_announced_about_when_the_ending_was_written_may_be_the_next_one(
    since: float, shown_at: float | None
) -> None:
    ending = holder_of(ended(30, again=True))
    holder = replace(ending, termination_shown_at=shown_at, newest_worker_since=since)
    assert moved(seen(job(Phase.RUNNING), first=30.9, holder=holder), at(60)) is None


def test_an_ending_with_code_0_is_a_release() -> None:
    snapshot = seen(job(Phase.RUNNING), holder=holder_of(ended(10, 0)))
    assert moved(snapshot, at(11)) == ("Queued", "WorkerGone")


@pytest.mark.parametrize(
    ("reason", "words"), [("OOMKilled", "exit code 137, OOMKilled"), ("", "exit code 137")]
)
def test_a_crash_says_how_the_container_ended(reason: str, words: str) -> None:
    ending = replace(ended(10), reason=reason)
    effect = judged(seen(job(Phase.RUNNING), holder=holder_of(ending)), at(20)).effect
    assert isinstance(effect, ChangePhase)
    message = str(effect.change.fields["message"])
    assert message == f"crash 1 of 3 allowed: the container of pod {POD} ended: {words}"


def test_a_lost_lease_says_of_whom_nothing_was_heard_or_what_became_of_the_pod() -> None:
    said = {
        HolderStatus(): f"no heartbeat of {WORKER} for 60 s",
        ALIVE: f"no heartbeat of {WORKER} for 60 s",
        HolderStatus(pods_known=True): f"pod {POD} is gone and its lease has ended",
        replace(ALIVE, pod=pod(deleting=True)): (
            f"pod {POD} was deleted or disrupted and its lease has ended"
        ),
    }
    for holder, words in said.items():
        effect = judged(seen(job(Phase.RUNNING), holder=holder), at(62)).effect
        assert isinstance(effect, ChangePhase)
        assert str(effect.change.fields["message"]).endswith(words)


def test_a_newer_process_is_proof_once_confirmed() -> None:
    holder = replace(ALIVE, newest_worker="worker-0/b")
    effect = judged(seen(job(Phase.RUNNING), holder=holder), at(1)).effect
    assert isinstance(effect, ChangePhase)
    assert effect.precondition == WorkerReplaced("ns", POD, WORKER)
    assert effect.change.reason == "WorkerCrashed"
    message = str(effect.change.fields["message"])
    assert message.endswith(f"{WORKER} was replaced by a newer process of its pod")


def test_a_pod_that_is_over_is_said_to_be_though_no_container_says_how_it_ended() -> None:
    over = replace(pod(), terminated=True, termination=None)
    effect = judged(seen(job(Phase.RUNNING), holder=replace(ALIVE, pod=over)), at(1)).effect
    assert isinstance(effect, ChangePhase)
    assert str(effect.change.fields["message"]).endswith(f"pod {POD} has ended")


def test_a_withdrawn_registration_proves_nothing() -> None:
    snapshot = seen(job(Phase.RUNNING), holder=replace(ALIVE, newest_worker=""))
    assert moved(snapshot, at(1)) is None


def test_disabled_recovery_recovers_nothing_but_times_out_all_the_same() -> None:
    options = DecisionOptions(recovery=False, timeout_margin=10)
    holder = HolderStatus(pods_known=True, pod=pod(terminated=True))
    snapshot = seen(job(Phase.RUNNING), holder=holder, options=options)
    assert moved(snapshot, at(1000)) is None
    assert judged(snapshot, at(1000)).requeue_at == 1810
    assert moved(snapshot, at(1810)) == ("Retrying", "ExecutionTimeout")


def test_the_crash_budget_ends_in_a_dead_letter() -> None:
    snapshot = seen(job(Phase.RUNNING, crashes=3))
    assert moved(snapshot, at(62)) == ("DeadLetter", "CrashBudgetExhausted")


def test_a_running_job_is_cancelled_after_the_grace_period_from_the_first_sight_of_it() -> None:
    before = seen(job(Phase.RUNNING, **running(duration=600)))
    requested = job(Phase.RUNNING, spec={"cancel": True}, **running(duration=600))
    observation = observe(before.observation, requested, before.queue, at(100), just_changed=True)
    snapshot = replace(before, job=requested, observation=observation)
    assert judged(snapshot, at(129)).requeue_at == 130
    assert moved(snapshot, at(130)) == ("Cancelled", "CancelRequested")


@pytest.mark.parametrize(
    ("own", "queues", "expected"), [(None, None, 30), (None, 7, 7), (3, 7, 3), (0, 7, 0)]
)
def test_the_jobs_grace_goes_before_the_queues_before_the_built_in(
    own: int | None, queues: int | None, expected: int
) -> None:
    spec = {"cancel": True, **({} if own is None else {"cancelGraceSeconds": own})}
    queue = QueueView(cancel_grace_seconds=queues)
    snapshot = seen(job(Phase.RUNNING, spec=spec), queue=queue)
    assert moved(snapshot, at(expected)) == ("Cancelled", "CancelRequested")
    if expected:
        assert moved(snapshot, at(expected - 1)) is None


def test_a_cancelled_job_of_a_dead_worker_is_cancelled_at_once() -> None:
    holder = HolderStatus(pods_known=True, pod=pod(terminated=True))
    snapshot = seen(job(Phase.RUNNING, spec={"cancel": True}), holder=holder)
    assert moved(snapshot, at(1)) == ("Cancelled", "CancelRequested")


def test_an_execution_timeout_counts_from_first_sight_of_the_claim() -> None:
    held = job(Phase.RUNNING, **running(duration=600))
    first = seen(held, first=100)
    renewed = job(Phase.RUNNING, **running(duration=600, renewals=9))
    observation = observe(first.observation, renewed, first.queue, at(1850), just_changed=True)
    snapshot = Snapshot(renewed, observation, DecisionOptions(timeout_margin=10), holder=ALIVE)
    assert moved(snapshot, at(1909)) is None
    assert moved(snapshot, at(1910)) == ("Retrying", "ExecutionTimeout")


@pytest.mark.parametrize("fate", ["deleting", "disrupted"])
@pytest.mark.parametrize("newest", [WORKER, "worker-0/b"])
def test_a_process_that_ends_with_its_pod_on_the_way_out_has_released_its_jobs(
    fate: str, newest: str
) -> None:
    gone = pod(**{fate: True}, terminated=newest == WORKER, termination=ended(0, 1))
    holder = HolderStatus(pods_known=True, pod=gone, newest_worker=newest)
    effect = judged(seen(job(Phase.RUNNING), holder=holder), at(1)).effect
    assert isinstance(effect, ChangePhase)
    assert (effect.change.target, effect.change.reason) == ("Queued", "WorkerGone")
    assert effect.change.fields["message"] == f"pod {POD} was deleted or disrupted"


def test_the_time_of_an_attempt_is_what_was_in_force_when_it_was_claimed() -> None:
    policy = EffectivePolicy(execution_timeout_seconds=20, lease_duration_seconds=600)
    held = job(Phase.RUNNING, effective=policy.to_json())
    snapshot = seen(held, options=DecisionOptions(timeout_margin=10))
    assert moved(snapshot, at(29)) is None
    assert moved(snapshot, at(30)) == ("Retrying", "ExecutionTimeout")
