"""Queues at a glance."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.entering import look_in
from asyncjob_gateway.dashboard.frame import QUEUES
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page import page, see
from asyncjob_gateway.dashboard.route import PageRoute
from asyncjob_gateway.dashboard.views.queues import count, queues_page

router = APIRouter(prefix=PREFIX, route_class=PageRoute)
ROUTERS = (router,)


@router.get("")
@router.get("/")
async def first(request: Request) -> Response:
    """Go to the first page that the reader may see."""
    room = await look_in(request)
    return see(room.links.to([*room.frame.sections, QUEUES][0].path))


@router.get("/queues")
async def queues(request: Request) -> Response:
    """Show all queues."""
    room = await look_in(request, rights.LIST_QUEUES)
    view = room.visit.view
    view.demand_synced()
    counted = count((entry.summary for entry in view.jobs.newest()), room.now)
    shown = queues_page(view.queues(room.now), counted, room.links, room.now)
    return page("queues.html", room.frame, shown)
