"""Reading jobs: one, always as it is now; many, from the cache."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from asyncjob.rest.job import Happening, Job, Page
from asyncjob.rest.results import Result
from asyncjob.rest.selection import PAGE, PAGE_MAX, Selection
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.pages import page
from asyncjob_gateway.context import Visit
from asyncjob_gateway.problems.declared import problems
from asyncjob_gateway.routes.answers import as_json, as_list
from asyncjob_gateway.routes.parameters import JobId
from asyncjob_gateway.routes.route import ApiRoute, Namespace, admitting, visiting

router = APIRouter(prefix="/api/v1", tags=["jobs"], route_class=ApiRoute)


class ListQuery(Selection):
    """Filters, which part of the list, and of which namespace."""

    cursor: Annotated[str, Field(max_length=256)] | None = None
    """`next` of the page before."""

    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = PAGE
    """Jobs on the page."""

    namespace: Namespace | None = None
    """Namespace of the jobs; the gateway's own if not given."""


@router.get(
    "/jobs",
    response_model=Page,
    responses=problems(kinds.NOT_SYNCED),
    summary="List jobs, newest first",
)
async def list_jobs(
    query: Annotated[ListQuery, Query()], visit: Annotated[Visit, admitting(rights.LIST)]
) -> Response:
    """Return a page of the jobs that match all filters.

    Lists are read from the replica's own copy, which follows the API server within moments; a job
    is in the list of the replica that accepted it at once. Paging neither skips nor repeats a job
    that stays as it is. `total` is given on the first page.
    """
    visit.view.demand_synced()
    return as_json(page(visit.view.jobs, query, query.cursor, query.limit))


@router.get(
    "/jobs/{id}", response_model=Job, responses=problems(kinds.NO_JOB), summary="Read a job"
)
async def get_job(
    job_id: JobId,
    visit: Annotated[Visit, visiting(rights.READ)],
) -> Response:
    """Return all that is known of a job, as it is now.

    Payload, request, checkpoint and result are null for who may not `read-payload`.
    """
    job = await visit.operations.get(job_id)
    return as_json(job if await visit.may(rights.READ_PAYLOAD) else job.without_payload())


@router.get(
    "/jobs/{id}/history",
    response_model=list[Happening],
    responses=problems(kinds.NO_JOB),
    summary="Read what happened to a job",
)
async def get_history(
    job_id: JobId,
    visit: Annotated[Visit, visiting(rights.READ)],
) -> Response:
    """Return the changes of its phase, oldest first, creation included."""
    return as_list((await visit.operations.get(job_id)).history)


@router.get(
    "/jobs/{id}/result",
    response_model=Result,
    responses=problems(kinds.NO_JOB, kinds.NO_RESULT),
    summary="Read a job's result",
)
async def get_result(
    job_id: JobId, visit: Annotated[Visit, visiting(rights.READ, rights.READ_PAYLOAD)]
) -> Response:
    """Return what the handler returned, or, of a large result, where it lies."""
    return as_json(await visit.operations.result(job_id))
