"""The small public contract: submit a job, see its state. Nothing of how it is done."""

from typing import Annotated

from fastapi import APIRouter, Body, Request
from starlette.responses import Response

from asyncjob.lifecycle.phases import Phase
from asyncjob.models.spec import RequestData
from asyncjob.rest.public import PUBLIC_WORDS, PublicAccepted, PublicJob, PublicSubmission
from asyncjob.rest.submission import Submission
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.context import Visit
from asyncjob_gateway.examples import PUBLIC_SUBMISSIONS
from asyncjob_gateway.problems.declared import problems
from asyncjob_gateway.routes.answers import as_json
from asyncjob_gateway.routes.carried import carried
from asyncjob_gateway.routes.keys import HeaderKey, with_key
from asyncjob_gateway.routes.parameters import JobId
from asyncjob_gateway.routes.route import ApiRoute, visiting

router = APIRouter(tags=["public"], route_class=ApiRoute)


@router.post(
    "/jobs",
    status_code=202,
    response_model=PublicAccepted,
    responses=problems(*kinds.OF_SUBMISSIONS),
    summary="Submit a job",
)
async def submit(
    request: Request,
    body: Annotated[PublicSubmission, Body(openapi_examples=PUBLIC_SUBMISSIONS)],
    visit: Annotated[Visit, visiting(rights.SUBMIT)],
    key: HeaderKey,
) -> Response:
    """Have a job done. The same `idempotencyKey` with the same body is the same job."""
    submission = Submission(
        type=body.job_type, payload=body.payload, idempotency_key=body.idempotency_key
    )
    handed_on: RequestData | None = carried(request, visit.context.settings)
    done = await visit.operations.submit(with_key(submission, key), handed_on)
    status = PUBLIC_WORDS[Phase(done.phase)]
    location = {"Location": f"/jobs/{done.id}"}
    return as_json(PublicAccepted(job_id=done.id, status=status), 202, location)


@router.get(
    "/jobs/{id}",
    response_model=PublicJob,
    responses=problems(kinds.NO_JOB),
    summary="See where a job is",
)
async def get(
    job_id: JobId,
    visit: Annotated[Visit, visiting(rights.READ)],
) -> Response:
    """Return where the job is. Read from the API server each time, never from a cache."""
    job = await visit.operations.get(job_id)
    return as_json(
        PublicJob(
            job_id=job.id,
            job_type=job.type,
            status=PUBLIC_WORDS[job.phase],
            created_at=job.created_at,
            updated_at=job.updated_at or job.created_at,
        )
    )
