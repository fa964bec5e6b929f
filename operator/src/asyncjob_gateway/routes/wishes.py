"""What may be wished of one job: cancel, suspend, resume, priority, rerun, redrive, dismiss."""

from typing import Annotated, Self

from fastapi import APIRouter, Body, Query
from pydantic import Field, model_validator
from starlette.responses import Response

from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import Job
from asyncjob.rest.submission import Submitted
from asyncjob.rest.wire import Ask
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.context import Visit
from asyncjob_gateway.examples import CHANGES
from asyncjob_gateway.problems.declared import problems
from asyncjob_gateway.routes.answers import as_json
from asyncjob_gateway.routes.parameters import JobId
from asyncjob_gateway.routes.route import ApiRoute, Where, admitting, visiting

router = APIRouter(prefix="/api/v1/jobs/{id}", tags=["jobs"], route_class=ApiRoute)


class CancelQuery(Where):
    """Where, and how far."""

    cascade: bool = False
    """Also cancel its unfinished children and the jobs that wait for it."""


class JobChange(Ask):
    """What to change of a job; at least one of the two."""

    suspend: bool | None = None
    """True: it is not started. False: it may be."""

    priority: Annotated[int, Field(ge=-1000, le=1000)] | None = None
    """Higher starts first; not while it runs."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.suspend is None and self.priority is None:
            raise ValueError("give suspend or priority, or both")
        return self


@router.delete(
    "",
    response_model=Job,
    responses={
        202: {"model": Job, "description": "It is being cancelled."},
        **problems(kinds.NO_JOB, kinds.NOT_CANCELLABLE, kinds.CONFLICT),
    },
    summary="Cancel a job",
)
async def cancel(
    job_id: JobId,
    query: Annotated[CancelQuery, Query()],
    visit: Annotated[Visit, admitting(rights.CONTROL)],
) -> Response:
    """Ask for the job to be cancelled: 202 while that comes about, 200 once it is.

    A dead letter is dismissed by it; a job that has succeeded stays so (409).
    """
    job = await visit.operations.cancel(job_id, cascade=query.cascade)
    done = job.phase is Phase.CANCELLED
    return as_json(await _shown(visit, job), 200 if done else 202)


@router.patch(
    "",
    response_model=Job,
    responses=problems(kinds.NO_JOB, kinds.CONFLICT, *kinds.OF_BODIES),
    summary="Suspend or resume a job, or change its priority",
)
async def change(
    job_id: JobId,
    body: Annotated[JobChange, Body(openapi_examples=CHANGES)],
    visit: Annotated[Visit, visiting(rights.CONTROL)],
) -> Response:
    """Change what may be changed of a job that exists."""
    job = await visit.operations.change(job_id, suspend=body.suspend, priority=body.priority)
    return as_json(await _shown(visit, job))


@router.post(
    "/rerun",
    status_code=202,
    response_model=Submitted,
    responses=problems(kinds.NO_JOB, kinds.CONFLICT),
    summary="Run a job again, as a new one",
)
async def rerun(
    job_id: JobId,
    visit: Annotated[Visit, visiting(rights.CONTROL)],
) -> Response:
    """Ask for a new job that does the same; its id is known, it exists a moment later.

    Takes the caller's right to read the Secret or ConfigMap that the payload comes from, if any.
    """
    done = await visit.operations.rerun(job_id)
    return as_json(done, 202, {"Location": f"/api/v1/jobs/{done.id}"})


@router.post(
    "/redrive",
    status_code=202,
    response_model=Job,
    responses=problems(kinds.NO_JOB, kinds.NOT_DEAD, kinds.CONFLICT),
    summary="Run a dead letter again",
)
async def redrive(
    job_id: JobId,
    visit: Annotated[Visit, visiting(rights.CONTROL)],
) -> Response:
    """Ask for the dead letter to be queued again, with fresh budgets of retries and crashes."""
    return as_json(await _shown(visit, await visit.operations.redrive(job_id)), 202)


@router.post(
    "/dismiss",
    status_code=202,
    response_model=Job,
    responses=problems(kinds.NO_JOB, kinds.NOT_DEAD, kinds.CONFLICT),
    summary="Be done with a dead letter",
)
async def dismiss(
    job_id: JobId,
    visit: Annotated[Visit, visiting(rights.CONTROL)],
) -> Response:
    """Ask for the dead letter to be closed: it becomes Cancelled, with the reason Dismissed."""
    return as_json(await _shown(visit, await visit.operations.dismiss(job_id)), 202)


async def _shown(visit: Visit, job: Job) -> Job:
    """Return what the caller may see of the job; who may control it need not see its payload."""
    return job if await visit.may(rights.READ_PAYLOAD) else job.without_payload()
