"""The page of the live workers."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.layout import render_page
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page_context import page_context
from asyncjob_gateway.dashboard.page_route import PageRoute
from asyncjob_gateway.dashboard.views.resources import worker_rows

router = APIRouter(prefix=f"{PREFIX}/workers", route_class=PageRoute)
ROUTERS = (router,)


@router.get("")
async def show_workers(request: Request) -> Response:
    """Show all workers."""
    ctx = await page_context(request, rights.LIST_QUEUES)
    ctx.request_context.cache.require_synced()
    rows = worker_rows(ctx.request_context.cache.workers(ctx.now), ctx.links, ctx.now)
    return render_page("workers.html", ctx.frame, rows)
