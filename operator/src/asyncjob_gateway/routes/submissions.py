"""Submitting jobs with every option, one or many at once."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import Field, WithJsonSchema
from starlette.responses import Response

from asyncjob.rest.submission import MAX_BATCH_JOBS, BatchReport, Submission, Submitted
from asyncjob.rest.wire import RequestModel
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.context import RequestContext
from asyncjob_gateway.examples import BATCHES, SUBMISSIONS
from asyncjob_gateway.problems.declared import problem_responses
from asyncjob_gateway.routes.answers import json_response
from asyncjob_gateway.routes.carried import forwarded_request
from asyncjob_gateway.routes.keys import HeaderKey, reject_batch_key, with_idempotency_key
from asyncjob_gateway.routes.route import ApiRoute, BatchRoute, authorized

router = APIRouter(prefix="/api/v1", tags=["jobs"], route_class=ApiRoute)
batch_router = APIRouter(prefix="/api/v1", tags=["jobs"], route_class=BatchRoute)

AnySubmission = Annotated[Any, WithJsonSchema({"$ref": "#/components/schemas/Submission"})]


class LooseBatch(RequestModel):
    """Several jobs to be created. Each is looked at, and succeeds or fails, by itself."""

    jobs: Annotated[list[AnySubmission], Field(min_length=1, max_length=MAX_BATCH_JOBS)]
    """The jobs, at most 1000."""


@router.post(
    "/jobs",
    status_code=202,
    response_model=Submitted,
    responses=problem_responses(*kinds.ON_SUBMISSIONS),
    summary="Submit a job",
)
async def submit(
    request: Request,
    body: Annotated[Submission, Body(openapi_examples=SUBMISSIONS)],
    ctx: Annotated[RequestContext, authorized(rights.SUBMIT_JOBS)],
    key: HeaderKey,
) -> Response:
    """Have a job done. `created` tells whether this request created it.

    A lost answer is no reason for a second job: repeat the request under the same
    `idempotencyKey`, to any replica.
    """
    handed_on = forwarded_request(request, ctx.app.settings)
    done = await ctx.operations.submit(with_idempotency_key(body, key), handed_on)
    return json_response(done, 202, {"Location": f"/api/v1/jobs/{done.id}"})


@batch_router.post(
    "/jobs/batch",
    response_model=BatchReport,
    responses=problem_responses(*kinds.ON_BODIES),
    summary="Submit several jobs",
)
async def submit_batch(
    request: Request,
    body: Annotated[LooseBatch, Body(openapi_examples=BATCHES)],
    ctx: Annotated[RequestContext, authorized(rights.SUBMIT_JOBS)],
) -> Response:
    """Have several jobs done. One that is refused stops none of the others."""
    reject_batch_key(request)
    handed_on = forwarded_request(request, ctx.app.settings)
    return json_response(await ctx.operations.submit_batch(body.jobs, handed_on))
