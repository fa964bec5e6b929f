from asyncjob.lifecycle.phases import Phase
from asyncjob.models.queue import AsyncQueueSpec
from asyncjob.rest.resources import CronJobInfo, QueueInfo, WorkerInfo
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.pages.queues import QueueRow, count_jobs, make_queues_page
from asyncjob_gateway.dashboard.views.resources import cron_rows, worker_rows
from support.objects.rest_jobs import NOW, before, summary


def queue_row(**more: object) -> QueueRow:
    info = QueueInfo(name="mail", namespace="ns", configured=True).model_copy(update=more)
    jobs = [
        summary("a", updated_at=before(30)),
        summary("b", updated_at=before(90)),
        summary("c", Phase.SUCCEEDED, completed_at=before(20)),
        summary("d", Phase.DEAD_LETTER, completed_at=before(40)),
        summary("e", Phase.SUCCEEDED, completed_at=before(200)),
        summary("f", Phase.SUCCEEDED, completed_at=before(20), queue="other"),
    ]
    return make_queues_page([info], count_jobs(jobs, NOW), Links(), NOW).queues[0]


def test_a_queue_tells_since_when_its_oldest_job_waits_and_what_finished_within_a_minute() -> None:
    row = queue_row()

    assert row.oldest
    assert row.oldest.ago == "1 min 30 s ago"
    assert row.finished == 2


def test_depths_lead_to_the_jobs_they_count() -> None:
    row = queue_row(counts={"Queued": 2, "DeadLetter": 1})

    counts = {one.mark.word: (one.number, one.url) for one in row.counts}
    assert counts["Queued"] == (2, "/dashboard/jobs?phase=Queued&queue=mail")
    assert counts["Dead letter"][0] == 1


def test_a_queue_is_stuck_where_jobs_wait_and_nobody_serves_it() -> None:
    assert queue_row(counts={"Queued": 1}).stuck
    assert not queue_row(counts={"Queued": 1}, workers=1).stuck
    assert not queue_row(counts={"Queued": 1}, paused=True).stuck
    assert not queue_row(counts={"Running": 1}).stuck


def test_limits_are_told_in_words() -> None:
    spec = AsyncQueueSpec.model_validate(
        {"maxConcurrency": 5, "maxQueued": 1000, "rateLimit": {"count": 3, "periodSeconds": 60}}
    )

    assert queue_row(spec=spec).limits == "5 at once, 1,000 waiting at most, 3 starts per 60 s"


def cron(name: str, next_: str | None, *, suspended: bool = False) -> CronJobInfo:
    return CronJobInfo(
        name=name,
        namespace="ns",
        schedule="@daily",
        time_zone="UTC",
        type="report",
        queue="default",
        next_scheduled_at=next_,
        suspended=suspended,
    )


def test_cron_jobs_that_run_next_come_first_and_suspended_ones_last() -> None:
    infos = [
        cron("idle", None),
        cron("later", before(-500)),
        cron("off", before(-5), suspended=True),
        cron("soon", before(-60)),
    ]

    rows = cron_rows(infos, Links(), NOW)

    assert [row.name for row in rows] == ["soon", "later", "idle", "off"]
    assert rows[0].next
    assert rows[0].next.ago == "in 1 min"
    assert rows[3].next is None


def test_a_worker_shows_its_slots_and_when_it_was_seen() -> None:
    info = WorkerInfo(
        name="l", namespace="ns", pod="w-0", queue="mail", slots=4, running=3, seen_at=before(2)
    )

    row = worker_rows([info], Links(), NOW)[0]

    assert (row.running, row.slots, row.queue_url) == (3, 4, "/dashboard/jobs?queue=mail")
    assert row.seen
    assert row.seen.ago == "2 s ago"
