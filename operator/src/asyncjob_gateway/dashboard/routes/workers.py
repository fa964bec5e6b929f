"""Workers that live."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.entering import look_in
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page import page
from asyncjob_gateway.dashboard.route import PageRoute
from asyncjob_gateway.dashboard.views.surroundings import worker_rows

router = APIRouter(prefix=f"{PREFIX}/workers", route_class=PageRoute)
ROUTERS = (router,)


@router.get("")
async def workers(request: Request) -> Response:
    """Show all workers."""
    room = await look_in(request, rights.LIST_QUEUES)
    room.visit.view.demand_synced()
    rows = worker_rows(room.visit.view.workers(room.now), room.links, room.now)
    return page("workers.html", room.frame, rows)
