"""The list of jobs, and the page of one job. What the list shows is used for dead letters, too."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from asyncjob.client.errors import JobNotFoundError
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.rest.jobs import Job, JobSummary, Page
from asyncjob.rest.resources import QueueInfo
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.jobs import JobCache
from asyncjob_gateway.cache.listing import list_page
from asyncjob_gateway.dashboard.formatting import plural
from asyncjob_gateway.dashboard.layout import render_page
from asyncjob_gateway.dashboard.links import PREFIX, Links
from asyncjob_gateway.dashboard.page_context import PageContext, page_context
from asyncjob_gateway.dashboard.page_route import PageRoute
from asyncjob_gateway.dashboard.views.filters import Filters, read_filters
from asyncjob_gateway.dashboard.views.job import NotCreatedPage, make_job_page
from asyncjob_gateway.dashboard.views.job_tree import JobTreeRow, LinkedJob, job_tree
from asyncjob_gateway.dashboard.views.rows import JobRow, PhaseBadge, job_row, phase_badge
from asyncjob_gateway.routes.api_route import JobId


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
        paused = {"reason": Reason.QUEUE_PAUSED.value, "message": f"queue {job.queue} is paused"}
        return job.model_copy(update=paused)
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


router = APIRouter(prefix=f"{PREFIX}/jobs", route_class=PageRoute)
ROUTERS = (router,)

JOB_ROWS: Final = 50
POLL_COUNTS: Final = frozenset(map(str, range(1, 21)))
"""How often a page looks for a job that was asked for and is to be created."""


@router.get("")
async def show_jobs(request: Request) -> Response:
    """Show a page of the list."""
    ctx = await page_context(request, rights.LIST_JOBS)
    filters, cursor = read_filters(request.query_params), request.query_params.get("cursor", "")
    found = list_jobs(ctx, filters, cursor, JOB_ROWS)
    shown = make_job_list(found, filters, ctx.links, ctx.now, path="/jobs", cursor=cursor)
    return render_page("jobs.html", ctx.frame, shown, 422 if filters.errors else 200)


def list_jobs(ctx: PageContext, filters: Filters, cursor: str, rows: int) -> Page:
    """Return the jobs of a page: none where a filter is wrong."""
    view = ctx.request_context.cache
    view.require_synced()
    if filters.selection is None:
        return Page(items=[], total=0)
    found = list_page(view.jobs, filters.selection, cursor or None, rows)
    queues = {queue.name: queue for queue in view.queues(ctx.now)}
    return found.model_copy(
        update={"items": [with_queue_reason(one, queues) for one in found.items]}
    )


@router.get("/{id}")
async def show_job(request: Request, job_id: JobId) -> Response:
    """Show a job as it is now."""
    ctx = await page_context(request, rights.READ_JOBS)
    try:
        read = await ctx.request_context.operations.get(job_id)
    except JobNotFoundError:
        looks = request.query_params.get("soon", "")
        if looks not in POLL_COUNTS:
            raise
        return _not_created_page(ctx, job_id, int(looks) + 1)
    if not ctx.allowed.read_payload:
        read = read.without_payload()
    members = _job_tree(ctx, read) if ctx.allowed.list_jobs else []
    may_signal = await ctx.request_context.is_allowed(rights.signal_job(job_id))
    shown = make_job_page(read, members, ctx.allowed, ctx.links, ctx.now, may_signal=may_signal)
    return render_page("job.html", ctx.frame, shown)


def _not_created_page(ctx: PageContext, job_id: str, looks: int) -> Response:
    again = ctx.links.job(job_id, {"did": ctx.frame.did, "soon": looks})
    return render_page("soon.html", ctx.frame, NotCreatedPage(job_id, again), 404)


def _job_tree(ctx: PageContext, job: Job) -> list[JobTreeRow]:
    view = ctx.request_context.cache
    if not view.synced:
        return []
    return job_tree(job.id, _linked_jobs(view.jobs), ctx.links, ctx.now)


def _linked_jobs(cache: JobCache) -> Iterator[LinkedJob]:
    for entry in cache.newest_first():
        yield LinkedJob(entry.summary, entry.parent, entry.rerun_of)
