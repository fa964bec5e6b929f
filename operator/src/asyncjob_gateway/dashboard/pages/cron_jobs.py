"""The page of all cron jobs: when they run next; trigger, suspend and resume."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.layout import render_page, see_other
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page_context import form_context, page_context
from asyncjob_gateway.dashboard.page_route import PageRoute
from asyncjob_gateway.dashboard.views.resources import cron_rows
from asyncjob_gateway.routes.api_route import CronJobName

router = APIRouter(prefix=f"{PREFIX}/cron-jobs", route_class=PageRoute)
ROUTERS = (router,)


@router.get("")
async def show_cron_jobs(request: Request) -> Response:
    """Show all cron jobs."""
    ctx = await page_context(request, rights.LIST_CRON_JOBS)
    cache = ctx.request_context.cache
    cache.require_synced()
    rows = cron_rows(cache.cron_jobs(), ctx.links, ctx.now)
    return render_page("cron_jobs.html", ctx.frame, rows)


@router.post("/{name}/trigger")
async def trigger(request: Request, name: CronJobName) -> Response:
    """Have it run now, and show the job."""
    ctx, _ = await form_context(request, rights.CONTROL_CRON_JOBS)
    done = await ctx.request_context.operations.trigger(name)
    return see_other(ctx.links.job(done.id, {"did": "triggered", "soon": "1"}))


@router.post("/{name}/{action}")
async def act_on_cron_job(
    request: Request, name: CronJobName, action: Annotated[str, Path(pattern="^(suspend|resume)$")]
) -> Response:
    """Suspend it or let it go on."""
    ctx, _ = await form_context(request, rights.CONTROL_CRON_JOBS)
    await ctx.request_context.operations.set_cron_job_suspended(name, suspended=action == "suspend")
    did = "cron-suspended" if action == "suspend" else "cron-resumed"
    return see_other(ctx.links.to("/cron-jobs", {"did": did}))
