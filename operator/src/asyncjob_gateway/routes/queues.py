"""Queues and the live workers that serve them: reading, and pausing and resuming queues."""

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from asyncjob.rest.resources import QueueInfo, WorkerInfo
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth import rights
from asyncjob_gateway.clock import now
from asyncjob_gateway.context import RequestContext
from asyncjob_gateway.openapi import problem_responses
from asyncjob_gateway.routes.api_route import (
    ApiRoute,
    QueueName,
    authorized,
    json_list_response,
    json_response,
)

router = APIRouter(prefix="/api/v1/queues", tags=["queues"], route_class=ApiRoute)


@router.get(
    "",
    response_model=list[QueueInfo],
    responses=problem_responses(problem_types.NOT_SYNCED),
    summary="List queues",
)
async def list_queues(
    ctx: Annotated[RequestContext, authorized(rights.LIST_QUEUES)],
) -> Response:
    """Return all queues: those with an AsyncQueue, and those that merely have jobs or workers."""
    ctx.cache.require_synced()
    return json_list_response(ctx.cache.queues(now()))


@router.get(
    "/{name}",
    response_model=QueueInfo,
    responses=problem_responses(problem_types.NOT_SYNCED),
    summary="Read a queue",
)
async def get_queue(
    name: QueueName, ctx: Annotated[RequestContext, authorized(rights.READ_QUEUES)]
) -> Response:
    """Return a queue; one that nobody has heard of is open, unlimited and empty."""
    ctx.cache.require_synced()
    return json_response(ctx.cache.queue(name, now()))


@router.post(
    "/{name}/pause",
    response_model=QueueInfo,
    responses=problem_responses(problem_types.NOT_SYNCED, problem_types.CONFLICT),
    summary="Pause a queue",
)
async def pause(
    name: QueueName, ctx: Annotated[RequestContext, authorized(rights.CONTROL_QUEUES)]
) -> Response:
    """Keep all jobs of the queue from starting; a queue without an AsyncQueue is given one."""
    ctx.cache.require_synced()
    return json_response(await ctx.operations.set_paused(name, paused=True))


@router.post(
    "/{name}/resume",
    response_model=QueueInfo,
    responses=problem_responses(problem_types.NOT_SYNCED, problem_types.CONFLICT),
    summary="Resume a queue",
)
async def resume(
    name: QueueName, ctx: Annotated[RequestContext, authorized(rights.CONTROL_QUEUES)]
) -> Response:
    """Let the jobs of a paused queue start."""
    ctx.cache.require_synced()
    return json_response(await ctx.operations.set_paused(name, paused=False))


workers_router = APIRouter(prefix="/api/v1/workers", tags=["workers"], route_class=ApiRoute)


@workers_router.get(
    "",
    response_model=list[WorkerInfo],
    responses=problem_responses(problem_types.NOT_SYNCED),
    summary="List workers",
)
async def list_workers(
    ctx: Annotated[RequestContext, authorized(rights.LIST_QUEUES)],
) -> Response:
    """Return the registered workers that have not fallen silent."""
    ctx.cache.require_synced()
    return json_list_response(ctx.cache.workers(now()))
