"""Queues: how they are doing, and whether they are paused."""

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from asyncjob.rest.surroundings import QueueInfo
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.clock import now
from asyncjob_gateway.context import RequestContext
from asyncjob_gateway.problems.declared import problem_responses
from asyncjob_gateway.routes.answers import json_list_response, json_response
from asyncjob_gateway.routes.parameters import QueueName
from asyncjob_gateway.routes.route import ApiRoute, authorized

router = APIRouter(prefix="/api/v1/queues", tags=["queues"], route_class=ApiRoute)


@router.get(
    "",
    response_model=list[QueueInfo],
    responses=problem_responses(kinds.NOT_SYNCED),
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
    responses=problem_responses(kinds.NOT_SYNCED),
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
    responses=problem_responses(kinds.NOT_SYNCED, kinds.CONFLICT),
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
    responses=problem_responses(kinds.NOT_SYNCED, kinds.CONFLICT),
    summary="Resume a queue",
)
async def resume(
    name: QueueName, ctx: Annotated[RequestContext, authorized(rights.CONTROL_QUEUES)]
) -> Response:
    """Let the jobs of a paused queue start."""
    ctx.cache.require_synced()
    return json_response(await ctx.operations.set_paused(name, paused=False))
