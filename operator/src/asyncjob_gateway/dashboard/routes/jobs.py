"""The list of jobs, and the page of one."""

from collections.abc import Iterator
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from asyncjob.client.errors import JobNotFoundError
from asyncjob.rest.job import Job, Page
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.jobs import JobCache
from asyncjob_gateway.cache.pages import page as page_of
from asyncjob_gateway.dashboard.entering import Room, look_in
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page import page
from asyncjob_gateway.dashboard.route import PageRoute
from asyncjob_gateway.dashboard.views.family import Member, Relative, family
from asyncjob_gateway.dashboard.views.filters import Filters, read_filters
from asyncjob_gateway.dashboard.views.job import Soon, job_page
from asyncjob_gateway.dashboard.views.job_list import explained, job_list
from asyncjob_gateway.routes.parameters import JobId

router = APIRouter(prefix=f"{PREFIX}/jobs", route_class=PageRoute)
ROUTERS = (router,)

ROWS: Final = 50
LOOKS: Final = frozenset(map(str, range(1, 21)))
"""How often a page looks for a job that was asked for and is to be created."""


@router.get("")
async def jobs(request: Request) -> Response:
    """Show a page of the list."""
    room = await look_in(request, rights.LIST)
    filters, cursor = read_filters(request.query_params), request.query_params.get("cursor", "")
    found = listed(room, filters, cursor, ROWS)
    shown = job_list(found, filters, room.links, room.now, path="/jobs", cursor=cursor)
    return page("jobs.html", room.frame, shown, 422 if filters.errors else 200)


def listed(room: Room, filters: Filters, cursor: str, rows: int) -> Page:
    """Return the jobs of a page: none where a filter is wrong."""
    view = room.visit.view
    view.demand_synced()
    if filters.selection is None:
        return Page(items=[], total=0)
    found = page_of(view.jobs, filters.selection, cursor or None, rows)
    queues = {queue.name: queue for queue in view.queues(room.now)}
    return found.model_copy(update={"items": [explained(one, queues) for one in found.items]})


@router.get("/{id}")
async def job(request: Request, job_id: JobId) -> Response:
    """Show a job as it is now."""
    room = await look_in(request, rights.READ)
    try:
        read = await room.visit.operations.get(job_id)
    except JobNotFoundError:
        looks = request.query_params.get("soon", "")
        if looks not in LOOKS:
            raise
        return _soon(room, job_id, int(looks) + 1)
    if not room.allowed.read_payload:
        read = read.without_payload()
    members = _family(room, read) if room.allowed.list_jobs else []
    shown = job_page(read, members, room.allowed, room.links, room.now)
    return page("job.html", room.frame, shown)


def _soon(room: Room, job_id: str, looks: int) -> Response:
    again = room.links.job(job_id, {"did": room.frame.did, "soon": looks})
    return page("soon.html", room.frame, Soon(job_id, again), 404)


def _family(room: Room, job: Job) -> list[Member]:
    view = room.visit.view
    if not view.synced:
        return []
    return family(job.id, _relatives(view.jobs), room.links, room.now)


def _relatives(cache: JobCache) -> Iterator[Relative]:
    for entry in cache.newest():
        yield Relative(entry.summary, entry.parent, entry.rerun_of)
