"""The small public contract: submit a job, see its state. Nothing of how it is done."""

from typing import Annotated

from fastapi import APIRouter, Body, Request
from starlette.responses import Response

from asyncjob.lifecycle.phases import Phase
from asyncjob.models.job import RequestData
from asyncjob.rest.jobs import PUBLIC_STATUS_BY_PHASE, PublicAccepted, PublicJob, PublicSubmission
from asyncjob.rest.submission import Submission
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth import rights
from asyncjob_gateway.context import RequestContext
from asyncjob_gateway.openapi import PUBLIC_SUBMISSIONS, problem_responses
from asyncjob_gateway.routes.api_route import ApiRoute, JobId, authorized, json_response
from asyncjob_gateway.routes.submissions import HeaderKey, forwarded_request, with_idempotency_key

router = APIRouter(tags=["public"], route_class=ApiRoute)


@router.post(
    "/jobs",
    status_code=202,
    response_model=PublicAccepted,
    responses=problem_responses(*problem_types.ON_SUBMISSIONS),
    summary="Submit a job",
)
async def submit(
    request: Request,
    body: Annotated[PublicSubmission, Body(openapi_examples=PUBLIC_SUBMISSIONS)],
    ctx: Annotated[RequestContext, authorized(rights.SUBMIT_JOBS)],
    key: HeaderKey,
) -> Response:
    """Have a job done. The same `idempotencyKey` with the same body is the same job."""
    submission = Submission(
        type=body.job_type, payload=body.payload, idempotency_key=body.idempotency_key
    )
    handed_on: RequestData | None = forwarded_request(request, ctx.app.settings)
    done = await ctx.operations.submit(with_idempotency_key(submission, key), handed_on)
    status = PUBLIC_STATUS_BY_PHASE[Phase(done.phase)]
    location = {"Location": f"/jobs/{done.id}"}
    return json_response(PublicAccepted(job_id=done.id, status=status), 202, location)


@router.get(
    "/jobs/{id}",
    response_model=PublicJob,
    responses=problem_responses(problem_types.NO_JOB),
    summary="See where a job is",
)
async def get(
    job_id: JobId,
    ctx: Annotated[RequestContext, authorized(rights.READ_JOBS)],
) -> Response:
    """Return where the job is. Read from the API server each time, never from a cache."""
    job = await ctx.operations.get(job_id)
    return json_response(
        PublicJob(
            job_id=job.id,
            job_type=job.type,
            status=PUBLIC_STATUS_BY_PHASE[job.phase],
            created_at=job.created_at,
            updated_at=job.updated_at or job.created_at,
        )
    )
