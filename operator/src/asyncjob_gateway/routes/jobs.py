"""Reading jobs: one, always as it is now; many, from the cache.

And redriving or dismissing many dead letters by a selection.
"""

from typing import Annotated

from fastapi import APIRouter, Body, Query
from pydantic import Field
from starlette.responses import Response

from asyncjob.rest.jobs import HistoryEvent, Job, Page, Result
from asyncjob.rest.listing import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, BulkAsk, BulkReport, Selection
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.listing import list_page
from asyncjob_gateway.context import RequestContext
from asyncjob_gateway.openapi import BULK_ACTIONS, problem_responses
from asyncjob_gateway.routes.api_route import (
    ApiRoute,
    JobId,
    Namespace,
    authorized,
    authorized_with_own_query,
    json_list_response,
    json_response,
)

router = APIRouter(prefix="/api/v1", tags=["jobs"], route_class=ApiRoute)


class ListQuery(Selection):
    """Filters, which part of the list, and of which namespace."""

    cursor: Annotated[str, Field(max_length=256)] | None = None
    """`next` of the page before."""

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE
    """Jobs on the page."""

    namespace: Namespace | None = None
    """Namespace of the jobs; the gateway's own if not given."""


@router.get(
    "/jobs",
    response_model=Page,
    responses=problem_responses(problem_types.NOT_SYNCED),
    summary="List jobs, newest first",
)
async def list_jobs(
    query: Annotated[ListQuery, Query()],
    ctx: Annotated[RequestContext, authorized_with_own_query(rights.LIST_JOBS)],
) -> Response:
    """Return a page of the jobs that match all filters.

    Lists are read from the replica's own copy, which follows the API server within moments; a job
    is in the list of the replica that accepted it at once. Paging neither skips nor repeats a job
    that stays as it is. `total` is given on the first page.
    """
    ctx.cache.require_synced()
    return json_response(list_page(ctx.cache.jobs, query, query.cursor, query.limit))


@router.get(
    "/jobs/{id}",
    response_model=Job,
    responses=problem_responses(problem_types.NO_JOB),
    summary="Read a job",
)
async def get_job(
    job_id: JobId,
    ctx: Annotated[RequestContext, authorized(rights.READ_JOBS)],
) -> Response:
    """Return all that is known of a job, as it is now.

    Payload, request, checkpoint and result are null for who may not `read-payload`.
    """
    job = await ctx.operations.get(job_id)
    return json_response(
        job if await ctx.is_allowed(rights.READ_PAYLOAD) else job.without_payload()
    )


@router.get(
    "/jobs/{id}/history",
    response_model=list[HistoryEvent],
    responses=problem_responses(problem_types.NO_JOB),
    summary="Read what happened to a job",
)
async def get_history(
    job_id: JobId,
    ctx: Annotated[RequestContext, authorized(rights.READ_JOBS)],
) -> Response:
    """Return the changes of its phase, oldest first, creation included."""
    return json_list_response((await ctx.operations.get(job_id)).history)


@router.get(
    "/jobs/{id}/result",
    response_model=Result,
    responses=problem_responses(problem_types.NO_JOB, problem_types.NO_RESULT),
    summary="Read a job's result",
)
async def get_result(
    job_id: JobId, ctx: Annotated[RequestContext, authorized(rights.READ_JOBS, rights.READ_PAYLOAD)]
) -> Response:
    """Return what the handler returned, or, of a large result, where it lies."""
    return json_response(await ctx.operations.result(job_id))


dead_letters_router = APIRouter(prefix="/api/v1/jobs", tags=["dead letters"], route_class=ApiRoute)

BulkBody = Annotated[BulkAsk, Body(openapi_examples=BULK_ACTIONS)]


@dead_letters_router.post(
    "/redrive",
    response_model=BulkReport,
    responses=problem_responses(*problem_types.ON_BODIES),
    summary="Run many dead letters again",
)
async def redrive(
    body: BulkBody,
    ctx: Annotated[RequestContext, authorized(rights.LIST_JOBS, rights.CONTROL_JOBS)],
) -> Response:
    """Redrive the dead letters that match, oldest first; with `dryRun` only say which."""
    return json_response(await ctx.operations.redrive_many(body))


@dead_letters_router.post(
    "/dismiss",
    response_model=BulkReport,
    responses=problem_responses(*problem_types.ON_BODIES),
    summary="Be done with many dead letters",
)
async def dismiss(
    body: BulkBody,
    ctx: Annotated[RequestContext, authorized(rights.LIST_JOBS, rights.CONTROL_JOBS)],
) -> Response:
    """Dismiss the dead letters that match, oldest first; with `dryRun` only say which."""
    return json_response(await ctx.operations.dismiss_many(body))
