"""Redriving and dismissing many dead letters at once."""

from typing import Annotated

from fastapi import APIRouter, Body
from starlette.responses import Response

from asyncjob.rest.selection import BulkAsk, BulkReport
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.context import RequestContext
from asyncjob_gateway.examples import BULK_ACTIONS
from asyncjob_gateway.problems.declared import problem_responses
from asyncjob_gateway.routes.answers import json_response
from asyncjob_gateway.routes.route import ApiRoute, authorized

dead_letters_router = APIRouter(prefix="/api/v1/jobs", tags=["dead letters"], route_class=ApiRoute)

BulkBody = Annotated[BulkAsk, Body(openapi_examples=BULK_ACTIONS)]


@dead_letters_router.post(
    "/redrive",
    response_model=BulkReport,
    responses=problem_responses(*kinds.ON_BODIES),
    summary="Run many dead letters again",
)
async def redrive(
    body: BulkBody,
    ctx: Annotated[RequestContext, authorized(rights.LIST_JOBS, rights.CONTROL_JOBS)],
) -> Response:
    """Redrive the dead letters that match, oldest first; with `dryRun` only say which."""
    return json_response(await ctx.operations.redrive_many(body))


@dead_letters_router.post(
    "/dismiss",
    response_model=BulkReport,
    responses=problem_responses(*kinds.ON_BODIES),
    summary="Be done with many dead letters",
)
async def dismiss(
    body: BulkBody,
    ctx: Annotated[RequestContext, authorized(rights.LIST_JOBS, rights.CONTROL_JOBS)],
) -> Response:
    """Dismiss the dead letters that match, oldest first; with `dryRun` only say which."""
    return json_response(await ctx.operations.dismiss_many(body))
