"""Queues: how they are doing, and whether they are paused."""

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from asyncjob.rest.surroundings import QueueInfo
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.clock import now
from asyncjob_gateway.context import Visit
from asyncjob_gateway.problems.declared import problems
from asyncjob_gateway.routes.answers import as_json, as_list
from asyncjob_gateway.routes.parameters import QueueName
from asyncjob_gateway.routes.route import ApiRoute, visiting

router = APIRouter(prefix="/api/v1/queues", tags=["queues"], route_class=ApiRoute)


@router.get(
    "",
    response_model=list[QueueInfo],
    responses=problems(kinds.NOT_SYNCED),
    summary="List queues",
)
async def list_queues(
    visit: Annotated[Visit, visiting(rights.LIST_QUEUES)],
) -> Response:
    """Return all queues: those with an AsyncQueue, and those that merely have jobs or workers."""
    visit.view.demand_synced()
    return as_list(visit.view.queues(now()))


@router.get(
    "/{name}",
    response_model=QueueInfo,
    responses=problems(kinds.NOT_SYNCED),
    summary="Read a queue",
)
async def get_queue(
    name: QueueName, visit: Annotated[Visit, visiting(rights.READ_QUEUES)]
) -> Response:
    """Return a queue; one that nobody has heard of is open, unlimited and empty."""
    visit.view.demand_synced()
    return as_json(visit.view.queue(name, now()))


@router.post(
    "/{name}/pause",
    response_model=QueueInfo,
    responses=problems(kinds.NOT_SYNCED, kinds.CONFLICT),
    summary="Pause a queue",
)
async def pause(
    name: QueueName, visit: Annotated[Visit, visiting(rights.CONTROL_QUEUES)]
) -> Response:
    """Keep all jobs of the queue from starting; a queue without an AsyncQueue is given one."""
    visit.view.demand_synced()
    return as_json(await visit.operations.set_paused(name, paused=True))


@router.post(
    "/{name}/resume",
    response_model=QueueInfo,
    responses=problems(kinds.NOT_SYNCED, kinds.CONFLICT),
    summary="Resume a queue",
)
async def resume(
    name: QueueName, visit: Annotated[Visit, visiting(rights.CONTROL_QUEUES)]
) -> Response:
    """Let the jobs of a paused queue start."""
    visit.view.demand_synced()
    return as_json(await visit.operations.set_paused(name, paused=False))
