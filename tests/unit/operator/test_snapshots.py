"""What a replica notes of a job, and from when it counts."""

import pytest

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.options import OPEN_QUEUE, QueueLimits, QueueView
from asyncjob_operator.core.snapshot import awaits_claim, is_claimable, observe
from support.objects.snapshots import at, job, running, stamp


def test_a_job_seen_twice_unchanged_is_known_since_the_first_time() -> None:
    first = observe(None, job(), OPEN_QUEUE, at(5), just_changed=True)
    assert observe(first, job(), OPEN_QUEUE, at(9), just_changed=True) is first


def test_a_renewal_moves_the_heartbeat_but_not_the_start_of_the_stay() -> None:
    first = observe(None, job(Phase.RUNNING), OPEN_QUEUE, at(5), just_changed=True)
    renewed = job(Phase.RUNNING, **running(renewals=1))
    second = observe(first, renewed, OPEN_QUEUE, at(9), just_changed=True)
    assert (second.entered_at, second.renewed_at) == (5, 9)


def test_another_claim_is_another_stay() -> None:
    first = observe(None, job(Phase.RUNNING), OPEN_QUEUE, at(5), just_changed=True)
    again = job(Phase.RUNNING, **{**running(), "attempt": 2, "claim": "claim-2"})
    assert observe(first, again, OPEN_QUEUE, at(9), just_changed=True).entered_at == 9


def test_a_backoff_seen_as_it_began_lasts_its_full_delay_whatever_the_calendar_says() -> None:
    retrying = job(Phase.RETRYING, retryDelaySeconds=50.0, nextAttemptTime=stamp(-500))
    assert observe(None, retrying, OPEN_QUEUE, at(5), just_changed=True).retry_at == 55


@pytest.mark.parametrize(
    ("next_attempt", "left"), [(20, 15), (-500, 0), (5000, 50)], ids=["partly", "over", "skewed"]
)
def test_a_backoff_found_in_a_list_lasts_until_its_time_but_never_beyond_its_delay(
    next_attempt: float, left: float
) -> None:
    retrying = job(Phase.RETRYING, retryDelaySeconds=50.0, nextAttemptTime=stamp(next_attempt))
    assert observe(None, retrying, OPEN_QUEUE, at(5), just_changed=False).retry_at == 5 + left


def test_a_backoff_that_is_changed_begins_again() -> None:
    before = job(Phase.RETRYING, retryDelaySeconds=50.0, nextAttemptTime=stamp(55))
    first = observe(None, before, OPEN_QUEUE, at(5), just_changed=True)
    longer = job(Phase.RETRYING, retryDelaySeconds=80.0, nextAttemptTime=stamp(85))
    assert observe(first, longer, OPEN_QUEUE, at(9), just_changed=True).retry_at == 89


def test_the_cancel_request_is_remembered_through_a_change_of_phase() -> None:
    requested = {"cancel": True}
    first = observe(None, job(spec=requested), OPEN_QUEUE, at(5), just_changed=True)
    second = observe(
        first, job(Phase.RUNNING, spec=requested), OPEN_QUEUE, at(9), just_changed=True
    )
    assert second.cancel_requested_at == 5


def test_a_request_seen_at_time_zero_is_not_taken_for_none() -> None:
    requested = job(Phase.RUNNING, spec={"cancel": True})
    first = observe(None, requested, OPEN_QUEUE, at(0), just_changed=True)
    assert observe(first, requested, OPEN_QUEUE, at(9), just_changed=True).cancel_requested_at == 0


def test_resuming_a_paused_queue_starts_the_claimable_time_again() -> None:
    paused = QueueView(paused=True)
    first = observe(None, job(), OPEN_QUEUE, at(0), just_changed=True)
    held = observe(first, job(), paused, at(50), just_changed=True)
    resumed = observe(held, job(), OPEN_QUEUE, at(80), just_changed=True)
    assert (first.claimable_since, held.claimable_since, resumed.claimable_since) == (0, None, 80)


def test_a_gated_job_is_claimable_from_its_admission() -> None:
    gated = {"notBefore": stamp(-1)}
    before = observe(None, job(spec=gated), OPEN_QUEUE, at(0), just_changed=True)
    admitted = observe(before, job(admitted=True, spec=gated), OPEN_QUEUE, at(7), just_changed=True)
    assert (before.claimable_since, admitted.claimable_since) == (None, 7)


@pytest.mark.parametrize("just_changed", [True, False])
def test_only_what_was_seen_from_its_beginning_is_known_to_be_whole_and_since_when(
    just_changed: bool,
) -> None:
    first = observe(None, job(), OPEN_QUEUE, at(5), just_changed=just_changed)
    assert (first.seen_from_start, first.created_at) == (just_changed, 5 if just_changed else None)
    claimed = observe(first, job(Phase.RUNNING), OPEN_QUEUE, at(9), just_changed=True)
    assert (claimed.seen_from_start, claimed.created_at) == (True, first.created_at)


@pytest.mark.parametrize(
    "seen", [job(Phase.DEAD_LETTER), job(Phase.QUEUED, redrives=1)], ids=["ended", "redriven"]
)
def test_a_job_that_has_ended_before_is_not_new_when_it_is_seen_again(seen: JobView) -> None:
    assert observe(None, seen, OPEN_QUEUE, at(5), just_changed=True).created_at is None


@pytest.mark.parametrize("paused", [True, False])
@pytest.mark.parametrize("phase", Phase)
def test_a_job_awaits_its_claim_while_it_is_queued_and_its_queue_is_open(
    phase: Phase, paused: bool
) -> None:
    expected = phase is Phase.QUEUED and not paused
    assert awaits_claim(job(phase), QueueView(paused=paused)) is expected
    assert is_claimable(job(phase), QueueView(paused=paused)) is expected
    limited = QueueView(paused=paused, limits=QueueLimits(max_concurrency=1))
    assert awaits_claim(job(phase), limited) is expected
    assert not is_claimable(job(phase), limited)
    assert is_claimable(job(phase, admitted=True), limited) is expected
