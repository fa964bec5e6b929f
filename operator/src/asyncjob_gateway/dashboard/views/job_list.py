"""A page of the list of jobs, and the dead-letter desk, which is one that is acted on."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.rest.job import JobSummary, Page
from asyncjob.rest.surroundings import QueueInfo
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.views.filters import Filters
from asyncjob_gateway.dashboard.views.rows import JobRow, PhaseBadge, job_row, phase_badge
from asyncjob_gateway.dashboard.words import plural


@dataclass(frozen=True, slots=True)
class PhaseChoice:
    """A phase that can be filtered by."""

    value: str
    mark: PhaseBadge
    chosen: bool


@dataclass(frozen=True, slots=True)
class JobList:
    """Rows, where the next ones are, and the form above them."""

    rows: list[JobRow]
    filters: Filters
    phases: list[PhaseChoice]
    path: str
    here: str
    count: str
    total: int
    next: str
    newest: str
    bare: str
    events: str
    is_empty: bool


def with_queue_reason(job: JobSummary, queues: Mapping[str, QueueInfo]) -> JobSummary:
    """Return the job with what it waits for by its queue, which the copy of all jobs lacks."""
    queue = queues.get(job.queue)
    if job.phase is not Phase.QUEUED or job.reason or queue is None:
        return job
    if queue.paused:
        said = {"reason": Reason.QUEUE_PAUSED.value, "message": f"queue {job.queue} is paused"}
        return job.model_copy(update=said)
    if not queue.workers:
        return job.model_copy(update={"message": f"no live worker serves queue {job.queue}"})
    return job


def make_job_list(
    page: Page,
    filters: Filters,
    links: Links,
    now: datetime,
    *,
    path: str,
    cursor: str,
    what: str = "job",
) -> JobList:
    """Return the view of a page.

    `path` is that of the list, `cursor` where the page begins, `what` the word for what it lists.
    """
    query: Mapping[str, object] = filters.query
    return JobList(
        rows=[job_row(job, links, now) for job in page.items],
        filters=filters,
        phases=[
            PhaseChoice(one.value, phase_badge(one), one.value in filters.phases) for one in Phase
        ],
        path=links.to(path),
        here=links.to(path, {**filters.query, "cursor": cursor}),
        count=_count_text(page, cursor, what),
        total=page.total or 0,
        next=links.to(path, {**filters.query, "cursor": page.next}) if page.next else "",
        newest=links.to(path, filters.query) if cursor else "",
        bare=links.to(path),
        events=links.to("/events", filters.query if query else None),
        is_empty=not page.items,
    )


def _count_text(page: Page, cursor: str, what: str) -> str:
    if cursor or page.total is None:
        return f"{plural(len(page.items), f'older {what}')} on this page"
    if page.next is None:
        return plural(page.total, what)
    return f"newest {len(page.items):,} of {plural(page.total, what)}"
