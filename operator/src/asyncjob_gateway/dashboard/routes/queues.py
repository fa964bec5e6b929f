"""Queues at a glance."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.entering import page_context
from asyncjob_gateway.dashboard.frame import QUEUES_SECTION
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page import render_page, see_other
from asyncjob_gateway.dashboard.route import PageRoute
from asyncjob_gateway.dashboard.views.queues import count_jobs, make_queues_page

router = APIRouter(prefix=PREFIX, route_class=PageRoute)
ROUTERS = (router,)


@router.get("")
@router.get("/")
async def redirect_to_first_page(request: Request) -> Response:
    """Go to the first page that the reader may see."""
    room = await page_context(request)
    return see_other(room.links.to([*room.frame.sections, QUEUES_SECTION][0].path))


@router.get("/queues")
async def show_queues(request: Request) -> Response:
    """Show all queues."""
    room = await page_context(request, rights.LIST_QUEUES)
    view = room.request_context.cache
    view.require_synced()
    counted = count_jobs((entry.summary for entry in view.jobs.newest_first()), room.now)
    shown = make_queues_page(view.queues(room.now), counted, room.links, room.now)
    return render_page("queues.html", room.frame, shown)
