"""When a reservation can be reclaimed, by what its job is and whether running jobs count."""

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.admission.reservations import Reservation, is_active, is_reclaimable
from support.objects.snapshots import job, stamp

STAY = stamp(0)


@pytest.mark.parametrize(
    ("phase", "admitted", "where_running_counts", "where_it_does_not"),
    [
        (Phase.QUEUED, False, False, False),
        (Phase.QUEUED, True, False, True),
        (Phase.RUNNING, True, False, True),
        (Phase.RETRYING, False, True, True),
        (Phase.SUCCEEDED, True, True, True),
    ],
)
def test_a_reservation_is_kept_for_as_long_as_its_job_counts(
    phase: Phase, admitted: bool, where_running_counts: bool, where_it_does_not: bool
) -> None:
    view = job(phase, admitted=admitted, lastTransitionTime=STAY)
    mine = Reservation(view.uid, view.name, STAY, "", STAY)
    assert is_reclaimable(mine, view, counts_running=True) is where_running_counts
    assert is_reclaimable(mine, view, counts_running=False) is where_it_does_not


def test_a_job_that_is_queued_again_has_left_the_stay_that_was_reserved() -> None:
    view = job(admitted=True, lastTransitionTime=stamp(60))
    earlier = Reservation(view.uid, view.name, STAY, "", STAY)
    assert is_reclaimable(earlier, view, counts_running=True)


@pytest.mark.parametrize("admitted", [True, False])
@pytest.mark.parametrize("phase", Phase)
def test_a_job_is_active_while_it_runs_or_may_be_claimed(phase: Phase, admitted: bool) -> None:
    may_be_claimed = phase is Phase.QUEUED and admitted
    assert is_active(job(phase, admitted=admitted)) is (phase is Phase.RUNNING or may_be_claimed)
