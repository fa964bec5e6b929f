"""The list of jobs, and the page of one."""

from collections.abc import Iterator
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from asyncjob.client.errors import JobNotFoundError
from asyncjob.rest.job import Job, Page
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.jobs import JobCache
from asyncjob_gateway.cache.pages import list_page
from asyncjob_gateway.dashboard.entering import PageContext, page_context
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page import render_page
from asyncjob_gateway.dashboard.route import PageRoute
from asyncjob_gateway.dashboard.views.family import JobTreeRow, LinkedJob, job_tree
from asyncjob_gateway.dashboard.views.filters import Filters, read_filters
from asyncjob_gateway.dashboard.views.job import NotCreatedPage, make_job_page
from asyncjob_gateway.dashboard.views.job_list import make_job_list, with_queue_reason
from asyncjob_gateway.routes.parameters import JobId

router = APIRouter(prefix=f"{PREFIX}/jobs", route_class=PageRoute)
ROUTERS = (router,)

JOB_ROWS: Final = 50
POLL_COUNTS: Final = frozenset(map(str, range(1, 21)))
"""How often a page looks for a job that was asked for and is to be created."""


@router.get("")
async def show_jobs(request: Request) -> Response:
    """Show a page of the list."""
    room = await page_context(request, rights.LIST_JOBS)
    filters, cursor = read_filters(request.query_params), request.query_params.get("cursor", "")
    found = list_jobs(room, filters, cursor, JOB_ROWS)
    shown = make_job_list(found, filters, room.links, room.now, path="/jobs", cursor=cursor)
    return render_page("jobs.html", room.frame, shown, 422 if filters.errors else 200)


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
    room = await page_context(request, rights.READ_JOBS)
    try:
        read = await room.request_context.operations.get(job_id)
    except JobNotFoundError:
        looks = request.query_params.get("soon", "")
        if looks not in POLL_COUNTS:
            raise
        return _not_created_page(room, job_id, int(looks) + 1)
    if not room.allowed.read_payload:
        read = read.without_payload()
    members = _job_tree(room, read) if room.allowed.list_jobs else []
    shown = make_job_page(read, members, room.allowed, room.links, room.now)
    return render_page("job.html", room.frame, shown)


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
