import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.models.job_status import JobError, Progress
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.views.rows import job_row, phase_badge
from support.objects.rest_jobs import NOW, summary

ERROR = JobError(type="ValueError", category="Other", message="no such user")


def test_every_phase_has_a_word_a_colour_and_a_meaning() -> None:
    marks = [phase_badge(phase) for phase in Phase]

    assert len({one.word for one in marks}) == len(Phase)
    assert all(one.colour and one.meaning for one in marks)


def test_progress_is_shown_while_a_job_runs_only() -> None:
    done = Progress(percent=40, message="reading")

    running = job_row(summary(phase=Phase.RUNNING, progress=done), Links(), NOW)
    retrying = job_row(summary(phase=Phase.RETRYING, progress=done), Links(), NOW)

    assert (running.percent, running.doing) == (40, "reading")
    assert (retrying.percent, retrying.doing) == (None, "")


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        (Phase.DEAD_LETTER, "ValueError: no such user"),
        (Phase.RETRYING, "ValueError: no such user"),
        (Phase.QUEUED, "queue mail is paused"),
        (Phase.SUCCEEDED, ""),
    ],
)
def test_a_row_says_why_the_job_is_where_it_is(phase: Phase, words: str) -> None:
    job = summary(phase=phase, error=ERROR, message="queue mail is paused", reason="QueuePaused")

    assert job_row(job, Links(), NOW).why == words


def test_a_failure_shows_its_retries_of_max_retries() -> None:
    shown = [
        job_row(summary(attempt=attempt, retries=retries, max_retries=most), Links(), NOW).tries
        for attempt, retries, most in ((0, 0, None), (1, 0, 3), (3, 2, 5))
    ]

    assert shown == ["", "1", "3, 2 of 5 retries"]
