"""Submitting jobs with every option, one or many at once."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import Field, WithJsonSchema
from starlette.responses import Response

from asyncjob.rest.submission import BATCH, BatchReport, Submission, Submitted
from asyncjob.rest.wire import Ask
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.context import Visit
from asyncjob_gateway.examples import BATCHES, SUBMISSIONS
from asyncjob_gateway.problems.declared import problems
from asyncjob_gateway.routes.answers import as_json
from asyncjob_gateway.routes.carried import carried
from asyncjob_gateway.routes.keys import HeaderKey, demand_none, with_key
from asyncjob_gateway.routes.route import ApiRoute, BatchRoute, visiting

router = APIRouter(prefix="/api/v1", tags=["jobs"], route_class=ApiRoute)
batches = APIRouter(prefix="/api/v1", tags=["jobs"], route_class=BatchRoute)

Anything = Annotated[Any, WithJsonSchema({"$ref": "#/components/schemas/Submission"})]


class LooseBatch(Ask):
    """Several jobs to be created. Each is looked at, and succeeds or fails, by itself."""

    jobs: Annotated[list[Anything], Field(min_length=1, max_length=BATCH)]
    """The jobs, at most 1000."""


@router.post(
    "/jobs",
    status_code=202,
    response_model=Submitted,
    responses=problems(*kinds.OF_SUBMISSIONS),
    summary="Submit a job",
)
async def submit(
    request: Request,
    body: Annotated[Submission, Body(openapi_examples=SUBMISSIONS)],
    visit: Annotated[Visit, visiting(rights.SUBMIT)],
    key: HeaderKey,
) -> Response:
    """Have a job done. `created` tells whether this request created it.

    A lost answer is no reason for a second job: repeat the request under the same
    `idempotencyKey`, to any replica.
    """
    handed_on = carried(request, visit.context.settings)
    done = await visit.operations.submit(with_key(body, key), handed_on)
    return as_json(done, 202, {"Location": f"/api/v1/jobs/{done.id}"})


@batches.post(
    "/jobs/batch",
    response_model=BatchReport,
    responses=problems(*kinds.OF_BODIES),
    summary="Submit several jobs",
)
async def submit_batch(
    request: Request,
    body: Annotated[LooseBatch, Body(openapi_examples=BATCHES)],
    visit: Annotated[Visit, visiting(rights.SUBMIT)],
) -> Response:
    """Have several jobs done. One that is refused stops none of the others."""
    demand_none(request)
    handed_on = carried(request, visit.context.settings)
    return as_json(await visit.operations.submit_batch(body.jobs, handed_on))
