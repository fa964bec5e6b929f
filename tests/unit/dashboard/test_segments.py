from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.jobs import HistoryEvent, Job
from asyncjob_gateway.dashboard.views.job import BAR_WIDTH, phase_segments
from support.objects.rest_jobs import NOW, before, happened, whole

CREATED = HistoryEvent(time=before(100), phase="Created")


def words(job: Job) -> list[str]:
    return [one.words for one in phase_segments(job, NOW)]


def test_an_attempt_is_seen_between_its_start_and_its_end() -> None:
    history = [
        CREATED,
        happened(70, Phase.RETRYING, ran=20),
        happened(60, Phase.QUEUED),
        happened(0, Phase.SUCCEEDED, ran=30),
    ]

    assert words(whole(phase=Phase.SUCCEEDED, history=history)) == [
        "Queued for 10 s",
        "Running for 20 s",
        "Retrying for 10 s",
        "Queued for 30 s",
        "Running for 30 s",
    ]


def test_what_goes_on_goes_on_until_now() -> None:
    running = whole(phase=Phase.RUNNING, started_at=before(40), history=[CREATED])

    assert words(running) == ["Queued for 1 min", "Running for 40 s"]
    assert words(whole(history=[CREATED])) == ["Queued for 1 min 40 s"]


def test_widths_are_true_and_fill_the_bar() -> None:
    running = whole(phase=Phase.RUNNING, started_at=before(25), history=[CREATED])

    first, second = phase_segments(running, NOW)

    assert (first.x, first.width) == (0, 750)
    assert (second.x, second.width) == (750, BAR_WIDTH - 750)


def test_a_job_of_no_age_has_no_bar() -> None:
    assert words(whole(history=[HistoryEvent(time=before(0), phase="Created")])) == []


def test_history_that_begins_late_is_shown_from_where_it_begins() -> None:
    late = [CREATED, happened(50, Phase.QUEUED), happened(20, Phase.DEAD_LETTER, ran=200)]

    assert words(whole(phase=Phase.DEAD_LETTER, history=late)) == [
        "Queued for 50 s",
        "Queued for 30 s",
    ]
