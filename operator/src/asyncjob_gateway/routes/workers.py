"""Workers that live."""

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from asyncjob.rest.surroundings import WorkerInfo
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.clock import now
from asyncjob_gateway.context import RequestContext
from asyncjob_gateway.problems.declared import problem_responses
from asyncjob_gateway.routes.answers import json_list_response
from asyncjob_gateway.routes.route import ApiRoute, authorized

workers_router = APIRouter(prefix="/api/v1/workers", tags=["workers"], route_class=ApiRoute)


@workers_router.get(
    "",
    response_model=list[WorkerInfo],
    responses=problem_responses(kinds.NOT_SYNCED),
    summary="List workers",
)
async def list_workers(
    ctx: Annotated[RequestContext, authorized(rights.LIST_QUEUES)],
) -> Response:
    """Return the workers that have announced themselves and have not fallen silent."""
    ctx.cache.require_synced()
    return json_list_response(ctx.cache.workers(now()))
