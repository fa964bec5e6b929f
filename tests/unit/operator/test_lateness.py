"""How late the operator is: for its deadlines, and in seeing new jobs."""

import pytest

from asyncjob_operator.controllers.job_informer import SHOWN_SECONDS, WatchLag
from asyncjob_operator.controllers.workqueue import DelayingQueue
from support.objects.snapshots import at, stamp


def test_a_delaying_queue_is_as_late_as_the_deadline_that_was_due_first() -> None:
    delays = DelayingQueue()
    assert delays.late_by(5.0) is None
    delays.requeue_at("a", 3.0)
    delays.requeue_at("b", 4.0)
    assert delays.late_by(2.0) is None
    assert delays.late_by(5.0) == 2.0


@pytest.mark.parametrize(("age", "shown"), [(-30, 0), (0, 0), (0.9, 0), (45, 45)])
def test_what_whole_seconds_cannot_tell_is_no_lag(age: float, shown: float) -> None:
    lag = WatchLag(lambda: at(100.0))
    lag.observe_created({"metadata": {"creationTimestamp": stamp(100.0 - age)}})
    assert lag.seconds() == pytest.approx(shown)


def test_a_lag_is_not_shown_for_ever_when_no_more_jobs_come() -> None:
    now = 100.0
    lag = WatchLag(lambda: at(now))
    assert lag.seconds() == 0
    lag.observe_created({"metadata": {"creationTimestamp": stamp(40)}})
    now += SHOWN_SECONDS - 1
    assert lag.seconds() == 60
    now += 2
    assert lag.seconds() == 0
