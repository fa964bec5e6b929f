"""Cron jobs: what they are about to do, and having one run now."""

from typing import Annotated

from fastapi import APIRouter, Body
from starlette.responses import Response

from asyncjob.rest.resources import BackfillAsk, CronJobInfo
from asyncjob.rest.submission import Submitted
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth import rights
from asyncjob_gateway.context import RequestContext
from asyncjob_gateway.openapi import BACKFILLS, problem_responses
from asyncjob_gateway.routes.api_route import (
    ApiRoute,
    CronJobName,
    authorized,
    json_list_response,
    json_response,
)

router = APIRouter(prefix="/api/v1/cron-jobs", tags=["cron jobs"], route_class=ApiRoute)


@router.get(
    "",
    response_model=list[CronJobInfo],
    responses=problem_responses(problem_types.NOT_SYNCED),
    summary="List cron jobs",
)
async def list_cron_jobs(
    ctx: Annotated[RequestContext, authorized(rights.LIST_CRON_JOBS)],
) -> Response:
    """Return all cron jobs."""
    ctx.cache.require_synced()
    return json_list_response(ctx.cache.cron_jobs())


@router.get(
    "/{name}",
    response_model=CronJobInfo,
    responses=problem_responses(problem_types.NOT_FOUND),
    summary="Read a cron job",
)
async def get_cron_job(
    name: CronJobName, ctx: Annotated[RequestContext, authorized(rights.READ_CRON_JOBS)]
) -> Response:
    """Return a cron job, with its spec and status.

    The template's payload and request are null for who may not `read-payload`.
    """
    info = await ctx.operations.cron_job(name)
    if not await ctx.is_allowed(rights.READ_PAYLOAD):
        info = without_template_payload(info)
    return json_response(info)


@router.post(
    "/{name}/trigger",
    status_code=202,
    response_model=Submitted,
    responses=problem_responses(problem_types.NOT_FOUND, problem_types.CONFLICT),
    summary="Have a cron job run now",
)
async def trigger(
    name: CronJobName, ctx: Annotated[RequestContext, authorized(rights.CONTROL_CRON_JOBS)]
) -> Response:
    """Ask for one run now; the id of its job is known, it exists a moment later.

    Takes the caller's right to read the Secret or ConfigMap that its payload comes from, if any.
    """
    done = await ctx.operations.trigger(name)
    return json_response(done, 202, {"Location": f"/api/v1/jobs/{done.id}"})


@router.post(
    "/{name}/backfill",
    status_code=202,
    response_model=CronJobInfo,
    responses=problem_responses(
        problem_types.NOT_FOUND, problem_types.CONFLICT, *problem_types.ON_BODIES
    ),
    summary="Have a cron job make up for a range of time",
)
async def backfill(
    name: CronJobName,
    body: Annotated[BackfillAsk, Body(openapi_examples=BACKFILLS)],
    ctx: Annotated[RequestContext, authorized(rights.CONTROL_CRON_JOBS)],
) -> Response:
    """Ask for the runs of times gone by; `status.backfill` shows how far they are.

    The same range is acted on once. Refused while another one is under way, unless `replace` is
    true. Takes the caller's right to read the Secret or ConfigMap that the payload comes from, if
    any.
    """
    info = await ctx.operations.backfill(name, body)
    return json_response(without_template_payload(info), 202)


@router.post(
    "/{name}/suspend",
    response_model=CronJobInfo,
    responses=problem_responses(problem_types.NOT_FOUND, problem_types.CONFLICT),
    summary="Suspend a cron job",
)
async def suspend(
    name: CronJobName, ctx: Annotated[RequestContext, authorized(rights.CONTROL_CRON_JOBS)]
) -> Response:
    """Keep it from creating jobs by its schedule."""
    info = await ctx.operations.set_cron_job_suspended(name, suspended=True)
    return json_response(without_template_payload(info))


@router.post(
    "/{name}/resume",
    response_model=CronJobInfo,
    responses=problem_responses(problem_types.NOT_FOUND, problem_types.CONFLICT),
    summary="Resume a cron job",
)
async def resume(
    name: CronJobName, ctx: Annotated[RequestContext, authorized(rights.CONTROL_CRON_JOBS)]
) -> Response:
    """Let it create jobs by its schedule again."""
    info = await ctx.operations.set_cron_job_suspended(name, suspended=False)
    return json_response(without_template_payload(info))


def without_template_payload(info: CronJobInfo) -> CronJobInfo:
    """Return the same without the payload and request of its jobs."""
    if info.spec is None:
        return info
    template = info.spec.job_template
    spec = template.spec.model_copy(update={"payload": None, "request": None})
    job_template = template.model_copy(update={"spec": spec})
    return info.model_copy(
        update={"spec": info.spec.model_copy(update={"job_template": job_template})}
    )
