"""Submitting jobs with every option, one or many at once.

Headers of the request are passed on to the handler by an allow-list only, and the idempotency key
may come in a header.
"""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Depends, Request
from pydantic import Field, ValidationError, WithJsonSchema
from starlette.responses import Response

from asyncjob.models.field_errors import field_detail
from asyncjob.models.job import RequestData
from asyncjob.rest.base import RequestModel
from asyncjob.rest.problem import FieldProblem
from asyncjob.rest.submission import MAX_BATCH_JOBS, BatchReport, Submission, Submitted
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth import rights
from asyncjob_gateway.context import RequestContext
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.openapi import BATCHES, SUBMISSIONS, problem_responses
from asyncjob_gateway.routes.api_route import (
    ApiRoute,
    BatchRoute,
    IdempotencyKey,
    authorized,
    json_response,
)
from asyncjob_gateway.settings import GatewaySettings


def forwarded_request(request: Request, settings: GatewaySettings) -> RequestData | None:
    """Return the headers to hand on, None if there are none.

    Raises RefusedError where they do not fit: 16 values of 4096 characters each.
    """
    headers = {
        name: request.headers.getlist(name)
        for name in settings.forward_headers
        if name in request.headers
    }
    try:
        return RequestData(headers=headers) if headers else None
    except ValidationError as error:
        found = [
            FieldProblem(field=f"header.{one['loc'][1]}", detail=field_detail(one))
            for one in error.errors(include_url=False, include_input=False)
        ]
        detail = f"{found[0].field}: {found[0].detail}"
        raise RefusedError(problem_types.INVALID, detail, errors=found) from error


_KEY_HEADER: Final = "Idempotency-Key"


async def _key_of_header(request: Request, key: IdempotencyKey = None) -> str | None:
    if len(set(request.headers.getlist(_KEY_HEADER))) > 1:
        raise _invalid_key("is given more than once, with different values")
    if key is not None and not key.isascii():
        # some clients send UTF-8 and some Latin-1: the same key would be two
        raise _invalid_key("has to be ASCII; send this key as idempotencyKey in the body")
    return key


HeaderKey = Annotated[str | None, Depends(_key_of_header)]
"""The key of the request's header; 422 where it could be read in two ways."""


def with_idempotency_key(submission: Submission, key: str | None) -> Submission:
    """Return the submission under the key of the request's header, if there is one.

    Raises RefusedError where header and body disagree.
    """
    if key is None or submission.idempotency_key == key:
        return submission
    if submission.idempotency_key is not None:
        raise _invalid_key("differs from idempotencyKey in the body")
    return submission.model_copy(update={"idempotency_key": key})


def reject_batch_key(request: Request) -> None:
    """Raise RefusedError where a batch is sent under a key: it would keep no job from being two."""
    if _KEY_HEADER in request.headers:
        raise _invalid_key("is not supported for batches; give each of its jobs an idempotencyKey")


def _invalid_key(detail: str) -> RefusedError:
    error = FieldProblem(field=f"header.{_KEY_HEADER}", detail=detail)
    return RefusedError(problem_types.INVALID, f"{_KEY_HEADER} {detail}", errors=[error])


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
    responses=problem_responses(*problem_types.ON_SUBMISSIONS),
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
    responses=problem_responses(*problem_types.ON_BODIES),
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
