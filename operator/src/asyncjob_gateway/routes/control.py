"""Controlling one job: cancel, suspend, resume, priority, signal, rerun, redrive, dismiss."""

from typing import Annotated, Final, Self

from fastapi import APIRouter, Body, Path, Query
from pydantic import Field, model_validator
from starlette.responses import Response

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.signals import MAX_SIGNAL_NAME_LENGTH, SIGNAL_NAME_PATTERN
from asyncjob.models.base import FreeJson
from asyncjob.rest.base import RequestModel
from asyncjob.rest.jobs import Job
from asyncjob.rest.submission import Submitted
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth import rights
from asyncjob_gateway.context import RequestContext
from asyncjob_gateway.openapi import CHANGES, SIGNALS, problem_responses
from asyncjob_gateway.routes.api_route import (
    ApiRoute,
    JobId,
    NamespaceQuery,
    authorized,
    authorized_with_own_query,
    json_response,
)

router = APIRouter(prefix="/api/v1/jobs/{id}", tags=["jobs"], route_class=ApiRoute)


class CancelQuery(NamespaceQuery):
    """Where, and how far."""

    cascade: bool = False
    """Also cancel its unfinished children and the jobs that wait for it."""


class JobChange(RequestModel):
    """What to change of a job; at least one of the two."""

    suspend: bool | None = None
    """True: it is not started. False: it may be."""

    priority: Annotated[int, Field(ge=-1000, le=1000)] | None = None
    """Higher starts first; not while it runs."""

    @model_validator(mode="after")
    def _at_least_one(self) -> Self:
        if self.suspend is None and self.priority is None:
            raise ValueError("give suspend or priority, or both")
        return self


@router.delete(
    "",
    response_model=Job,
    responses={
        202: {"model": Job, "description": "It is being cancelled."},
        **problem_responses(
            problem_types.NO_JOB, problem_types.NOT_CANCELLABLE, problem_types.CONFLICT
        ),
    },
    summary="Cancel a job",
)
async def cancel(
    job_id: JobId,
    query: Annotated[CancelQuery, Query()],
    ctx: Annotated[RequestContext, authorized_with_own_query(rights.CONTROL_JOBS)],
) -> Response:
    """Ask for the job to be cancelled: 202 while that comes about, 200 once it is.

    A dead letter is dismissed by it; a job that has succeeded stays so (409).
    """
    job = await ctx.operations.cancel(job_id, cascade=query.cascade)
    done = job.phase is Phase.CANCELLED
    return json_response(await _visible_to_caller(ctx, job), 200 if done else 202)


@router.patch(
    "",
    response_model=Job,
    responses=problem_responses(
        problem_types.NO_JOB, problem_types.CONFLICT, *problem_types.ON_BODIES
    ),
    summary="Suspend or resume a job, or change its priority",
)
async def change(
    job_id: JobId,
    body: Annotated[JobChange, Body(openapi_examples=CHANGES)],
    ctx: Annotated[RequestContext, authorized(rights.CONTROL_JOBS)],
) -> Response:
    """Change what may be changed of a job that exists."""
    job = await ctx.operations.change(job_id, suspend=body.suspend, priority=body.priority)
    return json_response(await _visible_to_caller(ctx, job))


_MAX_UID_LENGTH: Final = 128
"""Longer than any UID that the API server gives."""


class SignalBody(RequestModel):
    """A signal to a job."""

    payload: FreeJson | None = None
    """Any JSON, 16 KiB at most."""

    uid: Annotated[str, Field(min_length=1, max_length=_MAX_UID_LENGTH)] | None = None
    """The job's `uid`: a job that has taken its name since is sent nothing (409)."""


@router.post(
    "/signals/{signal}",
    response_model=Job,
    responses=problem_responses(
        problem_types.NO_JOB, problem_types.CONFLICT, *problem_types.ON_BODIES
    ),
    summary="Send a signal to a job",
)
async def signal(
    job_id: JobId,
    name: Annotated[
        str,
        Path(
            alias="signal",
            min_length=1,
            max_length=MAX_SIGNAL_NAME_LENGTH,
            pattern=SIGNAL_NAME_PATTERN,
            description="The signal's name.",
        ),
    ],
    body: Annotated[SignalBody, Body(openapi_examples=SIGNALS)],
    ctx: Annotated[RequestContext, authorized()],
) -> Response:
    """Tell a job something that its handler waits for, or will: an approval, for instance.

    Takes the verb `signal` on that job. A signal is sent once for each name, in the name of the
    caller; repeating it changes nothing, and sending another of the same name is refused (409), as
    is one for a job that has finished or no longer waits for it.
    """
    await ctx.require(rights.signal_job(job_id))
    sender = ctx.caller.username
    job = await ctx.operations.signal(job_id, name, body.payload, sender=sender, uid=body.uid)
    return json_response(await _visible_to_caller(ctx, job))


@router.post(
    "/rerun",
    status_code=202,
    response_model=Submitted,
    responses=problem_responses(problem_types.NO_JOB, problem_types.CONFLICT),
    summary="Run a job again, as a new one",
)
async def rerun(
    job_id: JobId,
    ctx: Annotated[RequestContext, authorized(rights.CONTROL_JOBS)],
) -> Response:
    """Ask for a new job that does the same; its id is known, it exists a moment later.

    Takes the caller's right to read the Secret or ConfigMap that the payload comes from, if any.
    """
    done = await ctx.operations.rerun(job_id)
    return json_response(done, 202, {"Location": f"/api/v1/jobs/{done.id}"})


@router.post(
    "/redrive",
    status_code=202,
    response_model=Job,
    responses=problem_responses(
        problem_types.NO_JOB, problem_types.NOT_A_DEAD_LETTER, problem_types.CONFLICT
    ),
    summary="Run a dead letter again",
)
async def redrive(
    job_id: JobId,
    ctx: Annotated[RequestContext, authorized(rights.CONTROL_JOBS)],
) -> Response:
    """Ask for the dead letter to be queued again, with fresh budgets of retries and crashes."""
    return json_response(await _visible_to_caller(ctx, await ctx.operations.redrive(job_id)), 202)


@router.post(
    "/dismiss",
    status_code=202,
    response_model=Job,
    responses=problem_responses(
        problem_types.NO_JOB, problem_types.NOT_A_DEAD_LETTER, problem_types.CONFLICT
    ),
    summary="Be done with a dead letter",
)
async def dismiss(
    job_id: JobId,
    ctx: Annotated[RequestContext, authorized(rights.CONTROL_JOBS)],
) -> Response:
    """Ask for the dead letter to be closed: it becomes Cancelled, with the reason Dismissed."""
    return json_response(await _visible_to_caller(ctx, await ctx.operations.dismiss(job_id)), 202)


async def _visible_to_caller(ctx: RequestContext, job: Job) -> Job:
    """Return what the caller may see of the job; who may control it need not see its payload."""
    return job if await ctx.is_allowed(rights.READ_PAYLOAD) else job.without_payload()
