"""Redriving and dismissing many dead letters at once."""

from typing import Annotated

from fastapi import APIRouter, Body
from starlette.responses import Response

from asyncjob.rest.selection import BulkAsk, BulkReport
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.context import Visit
from asyncjob_gateway.examples import BULKS
from asyncjob_gateway.problems.declared import problems
from asyncjob_gateway.routes.answers import as_json
from asyncjob_gateway.routes.route import ApiRoute, visiting

router = APIRouter(prefix="/api/v1/jobs", tags=["dead letters"], route_class=ApiRoute)

Asked = Annotated[BulkAsk, Body(openapi_examples=BULKS)]


@router.post(
    "/redrive",
    response_model=BulkReport,
    responses=problems(*kinds.OF_BODIES),
    summary="Run many dead letters again",
)
async def redrive(
    body: Asked, visit: Annotated[Visit, visiting(rights.LIST, rights.CONTROL)]
) -> Response:
    """Redrive the dead letters that match, oldest first; with `dryRun` only say which."""
    return as_json(await visit.operations.redrive_many(body))


@router.post(
    "/dismiss",
    response_model=BulkReport,
    responses=problems(*kinds.OF_BODIES),
    summary="Be done with many dead letters",
)
async def dismiss(
    body: Asked, visit: Annotated[Visit, visiting(rights.LIST, rights.CONTROL)]
) -> Response:
    """Dismiss the dead letters that match, oldest first; with `dryRun` only say which."""
    return as_json(await visit.operations.dismiss_many(body))
