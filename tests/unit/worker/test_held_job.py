"""What a worker keeps of a job that it holds."""

import itertools

import pytest

from asyncjob.app.context import Stop
from support.parts.worker_parts import held


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(Stop, 2)))
def test_of_two_reasons_to_stop_the_higher_counts_whichever_came_first(
    first: Stop, second: Stop
) -> None:
    order = [Stop.DRAINING, Stop.TIMED_OUT, Stop.REFUSED, Stop.CANCELLED, Stop.FENCED]
    job = held()
    job.stop(first)
    job.stop(second)
    assert job.stopped is max(first, second, key=order.index)


def test_whoever_runs_the_handler_is_told_of_each_stop() -> None:
    told: list[Stop | None] = []
    job = held()
    with job.reacting(lambda: told.append(job.stopped)):
        job.stop(Stop.DRAINING)
        job.stop(Stop.CANCELLED)
    job.stop(Stop.FENCED)
    assert told == [Stop.DRAINING, Stop.CANCELLED]


def test_times_are_counted_from_sending() -> None:
    job = held(sent_at=100.0)
    assert (job.renewal_due_at, job.lease_expires_at, job.times_out_at) == (120.0, 160.0, 1900.0)
    job.sent_at = 200.0
    assert (job.renewal_due_at, job.lease_expires_at, job.times_out_at) == (220.0, 260.0, 1900.0)


def test_reports_coalesce_and_the_newest_wins() -> None:
    job = held()
    assert job.unsaved_report() is None
    job.progress(10, None)
    job.checkpoint({"row": 1})
    job.progress(20, "on")
    draft = job.unsaved_report()
    assert draft
    assert draft.progress == {"percent": 20, "message": "on"}
    assert draft.checkpoint == {"row": 1}


def test_a_checkpoint_that_is_stored_is_not_sent_again_with_later_progress() -> None:
    job = held()
    job.checkpoint({"row": 1})
    job.stored_version = job.latest_report.version
    assert job.unsaved_report() is None
    job.progress(20, None)
    draft = job.unsaved_report()
    assert draft
    assert draft.progress == {"percent": 20}
    assert not draft.checkpoint_version


def test_a_long_progress_message_is_cut_with_a_mark() -> None:
    job = held()
    job.progress(1, "x" * 5000)
    assert job.latest_report.progress
    message = job.latest_report.progress["message"]
    assert isinstance(message, str)
    assert len(message) == 1024
    assert message.endswith("…")


@pytest.mark.parametrize(("spec", "grace"), [({}, 30.0), ({"cancelGraceSeconds": 0}, 0.0)])
def test_the_grace_of_a_cancel_is_the_jobs_own_or_built_in(
    spec: dict[str, int], grace: float
) -> None:
    assert held(spec=spec).cancel_grace == grace
