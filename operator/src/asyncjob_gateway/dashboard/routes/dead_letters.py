"""The dead-letter desk: many are redriven or dismissed at once, after being asked how many."""

import asyncio
from typing import Final

from fastapi import APIRouter, Request
from starlette.datastructures import QueryParams
from starlette.responses import Response

from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.selection import BulkAsk, BulkFailure, BulkReport
from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.entering import act_in, look_in
from asyncjob_gateway.dashboard.forms import Form, one
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.many import each
from asyncjob_gateway.dashboard.page import page, see
from asyncjob_gateway.dashboard.route import PageRoute
from asyncjob_gateway.dashboard.routes.jobs import listed
from asyncjob_gateway.dashboard.views.bulk import (
    Asked,
    confirmation,
    read_asked,
    report,
)
from asyncjob_gateway.dashboard.views.filters import read_filters
from asyncjob_gateway.dashboard.views.job_list import job_list
from asyncjob_gateway.operations import Operations

router = APIRouter(prefix=f"{PREFIX}/dead-letters", route_class=PageRoute)
ROUTERS = (router,)

ROWS: Final = 100
_SHARE: Final = 0.6
"""The part of a request's time after which nothing more is begun: its answer is to tell of all."""


@router.get("")
async def desk(request: Request) -> Response:
    """Show the dead letters that match."""
    room = await look_in(request, rights.LIST)
    cursor = request.query_params.get("cursor", "")
    filters = read_filters(request.query_params, Phase.DEAD_LETTER)
    found = listed(room, filters, cursor, ROWS)
    shown = job_list(
        found,
        filters,
        room.links,
        room.now,
        path="/dead-letters",
        cursor=cursor,
        what="dead letter",
    )
    return page("dead_letters.html", room.frame, shown, 422 if filters.errors else 200)


@router.post("/confirm")
async def confirm(request: Request) -> Response:
    """Say how many, and ask once more; nothing is done yet."""
    room, form = await act_in(request, rights.LIST, rights.CONTROL)
    asked = read_asked(form)
    if asked is None:
        return see(room.links.to("/dead-letters", _query(form)))
    found = await _found(room.visit.operations, asked)
    return page("confirm.html", room.frame, confirmation(asked, found, room.links))


@router.post("/do")
async def do(request: Request) -> Response:
    """Do it, and say what became of each."""
    room, form = await act_in(request, rights.LIST, rights.CONTROL)
    asked = read_asked(form)
    if asked is None:
        return see(room.links.to("/dead-letters", _query(form)))
    seconds = _SHARE * room.visit.context.settings.request_timeout
    done = await _done(room.visit.operations, asked, seconds)
    return page("report.html", room.frame, report(asked, done, room.links))


def _query(form: Form) -> dict[str, str]:
    filters = read_filters(QueryParams(one(form, "filters")), Phase.DEAD_LETTER)
    return filters.given


async def _found(operations: Operations, asked: Asked) -> BulkReport:
    if not asked.all:
        return BulkReport(matched=len(asked.ids), done=list(asked.ids), dry_run=True)
    return await operations.redrive_many(
        BulkAsk(selection=asked.selection, limit=asked.limit, dry_run=True)
    )


async def _done(operations: Operations, asked: Asked, seconds: float) -> BulkReport:
    found, late = await _found(operations, asked), asyncio.Event()
    act = operations.redrive if asked.action == "redrive" else operations.dismiss
    timer = asyncio.get_running_loop().call_later(seconds, late.set)
    try:
        told = await each(found.done, act, late)
    finally:
        timer.cancel()
    return BulkReport(
        matched=found.matched,
        done=[job_id for job_id, problem in told.items() if not problem],
        failed=[BulkFailure(id=job_id, detail=text) for job_id, text in told.items() if text],
    )
