"""Arrays: submitting them, how far they are, their failed items, and what one may ask of them."""

from typing import Annotated

from fastapi import APIRouter, Body, Query
from pydantic import Field
from starlette.responses import Response

from asyncjob.rest.arrays import (
    ArrayInfo,
    ArrayPage,
    ArraySelection,
    ArraySubmission,
    FailedItems,
    SubmittedArray,
)
from asyncjob.rest.listing import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.listing import array_page
from asyncjob_gateway.context import RequestContext
from asyncjob_gateway.openapi import ARRAY_SUBMISSIONS, problem_responses
from asyncjob_gateway.routes.api_route import (
    ApiRoute,
    ArrayName,
    Namespace,
    authorized,
    authorized_with_own_query,
    json_response,
)

router = APIRouter(prefix="/api/v1/arrays", tags=["arrays"], route_class=ApiRoute)


class ArrayListQuery(ArraySelection):
    """Filters, which part of the list, and of which namespace."""

    cursor: Annotated[str, Field(max_length=256)] | None = None
    """`next` of the page before."""

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)] = DEFAULT_PAGE_SIZE
    """Arrays on the page."""

    namespace: Namespace | None = None
    """Namespace of the arrays; the gateway's own if not given."""


@router.post(
    "",
    status_code=202,
    response_model=SubmittedArray,
    responses=problem_responses(*problem_types.ON_BODIES, problem_types.ARRAY_EXISTS),
    summary="Submit an array",
)
async def submit_array(
    body: Annotated[ArraySubmission, Body(openapi_examples=ARRAY_SUBMISSIONS)],
    ctx: Annotated[RequestContext, authorized(rights.SUBMIT_ARRAYS)],
) -> Response:
    """Have a handler run over many items. `created` tells whether this request created the array.

    A lost answer is no reason for a second array: repeat the request under the same `name`.
    """
    done = await ctx.operations.submit_array(body)
    return json_response(done, 202, {"Location": f"/api/v1/arrays/{done.name}"})


@router.get(
    "",
    response_model=ArrayPage,
    responses=problem_responses(problem_types.NOT_SYNCED),
    summary="List arrays, newest first",
)
async def list_arrays(
    query: Annotated[ArrayListQuery, Query()],
    ctx: Annotated[RequestContext, authorized_with_own_query(rights.LIST_ARRAYS)],
) -> Response:
    """Return a page of the arrays that match all filters, without spec and status.

    Lists are read from the replica's own copy, which follows the API server within moments.
    `total` is given on the first page.
    """
    ctx.cache.require_synced()
    return json_response(array_page(ctx.cache.arrays(), query, query.cursor, query.limit))


@router.get(
    "/{name}",
    response_model=ArrayInfo,
    responses=problem_responses(problem_types.NOT_FOUND),
    summary="Read an array",
)
async def get_array(
    name: ArrayName, ctx: Annotated[RequestContext, authorized(rights.READ_ARRAYS)]
) -> Response:
    """Return an array as it is now, with its spec and status.

    Payload and items are null for who may not `read-payload`.
    """
    return await _array_response(ctx, await ctx.operations.array(name))


@router.get(
    "/{name}/failed-items",
    response_model=FailedItems,
    responses=problem_responses(problem_types.NOT_FOUND),
    summary="Read which items of an array have failed",
)
async def get_failed_items(
    name: ArrayName, ctx: Annotated[RequestContext, authorized(rights.READ_ARRAYS)]
) -> Response:
    """Return the numbers of the failed items, and the newest errors."""
    return json_response(await ctx.operations.failed_items(name))


@router.post(
    "/{name}/cancel",
    response_model=ArrayInfo,
    responses=problem_responses(
        problem_types.NOT_FOUND, problem_types.CONFLICT, problem_types.NOT_CANCELLABLE
    ),
    summary="Cancel an array",
)
async def cancel(
    name: ArrayName, ctx: Annotated[RequestContext, authorized(rights.CONTROL_ARRAYS)]
) -> Response:
    """Cancel the array and its chunks; what is done stays counted."""
    return await _array_response(ctx, await ctx.operations.cancel_array(name))


@router.post(
    "/{name}/suspend",
    response_model=ArrayInfo,
    responses=problem_responses(problem_types.NOT_FOUND, problem_types.CONFLICT),
    summary="Suspend an array",
)
async def suspend(
    name: ArrayName, ctx: Annotated[RequestContext, authorized(rights.CONTROL_ARRAYS)]
) -> Response:
    """Keep it from beginning further chunks; those that run continue."""
    return await _array_response(
        ctx, await ctx.operations.set_array_suspended(name, suspended=True)
    )


@router.post(
    "/{name}/resume",
    response_model=ArrayInfo,
    responses=problem_responses(problem_types.NOT_FOUND, problem_types.CONFLICT),
    summary="Resume an array",
)
async def resume(
    name: ArrayName, ctx: Annotated[RequestContext, authorized(rights.CONTROL_ARRAYS)]
) -> Response:
    """Let it go on."""
    return await _array_response(
        ctx, await ctx.operations.set_array_suspended(name, suspended=False)
    )


@router.post(
    "/{name}/redrive",
    status_code=202,
    response_model=ArrayInfo,
    responses=problem_responses(problem_types.NOT_FOUND, problem_types.CONFLICT),
    summary="Run the failed items of an array again",
)
async def redrive(
    name: ArrayName, ctx: Annotated[RequestContext, authorized(rights.CONTROL_ARRAYS)]
) -> Response:
    """Run the failed items of a failed array again, and after them those that were never run."""
    return await _array_response(ctx, await ctx.operations.redrive_array(name), 202)


async def _array_response(ctx: RequestContext, array: ArrayInfo, status: int = 200) -> Response:
    allowed = await ctx.is_allowed(rights.READ_PAYLOAD)
    return json_response(array if allowed else array.without_payload(), status)
