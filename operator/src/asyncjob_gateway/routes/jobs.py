"""Reading jobs: one, always as it is now; many, from the cache."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from asyncjob.rest.job import Happening, Job, Page
from asyncjob.rest.results import Result
from asyncjob.rest.selection import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, Selection
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.pages import list_page
from asyncjob_gateway.context import RequestContext
from asyncjob_gateway.problems.declared import problem_responses
from asyncjob_gateway.routes.answers import json_list_response, json_response
from asyncjob_gateway.routes.parameters import JobId
from asyncjob_gateway.routes.route import ApiRoute, Namespace, authorized, authorized_with_own_query

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
    responses=problem_responses(kinds.NOT_SYNCED),
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
    responses=problem_responses(kinds.NO_JOB),
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
    response_model=list[Happening],
    responses=problem_responses(kinds.NO_JOB),
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
    responses=problem_responses(kinds.NO_JOB, kinds.NO_RESULT),
    summary="Read a job's result",
)
async def get_result(
    job_id: JobId, ctx: Annotated[RequestContext, authorized(rights.READ_JOBS, rights.READ_PAYLOAD)]
) -> Response:
    """Return what the handler returned, or, of a large result, where it lies."""
    return json_response(await ctx.operations.result(job_id))
