"""Workers that live."""

from typing import Annotated

from fastapi import APIRouter
from starlette.responses import Response

from asyncjob.rest.surroundings import WorkerInfo
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.clock import now
from asyncjob_gateway.context import Visit
from asyncjob_gateway.problems.declared import problems
from asyncjob_gateway.routes.answers import as_list
from asyncjob_gateway.routes.route import ApiRoute, visiting

router = APIRouter(prefix="/api/v1/workers", tags=["workers"], route_class=ApiRoute)


@router.get(
    "",
    response_model=list[WorkerInfo],
    responses=problems(kinds.NOT_SYNCED),
    summary="List workers",
)
async def list_workers(
    visit: Annotated[Visit, visiting(rights.LIST_QUEUES)],
) -> Response:
    """Return the workers that have announced themselves and have not fallen silent."""
    visit.view.demand_synced()
    return as_list(visit.view.workers(now()))
