"""The dead-letter desk: many are redriven or dismissed at once, after being asked how many."""

import asyncio
from typing import Final

from fastapi import APIRouter, Request
from starlette.datastructures import QueryParams
from starlette.responses import Response

from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.selection import BulkAsk, BulkFailure, BulkReport
from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.entering import form_context, page_context
from asyncjob_gateway.dashboard.forms import Form, field_value
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.many import apply_to_each
from asyncjob_gateway.dashboard.page import render_page, see_other
from asyncjob_gateway.dashboard.route import PageRoute
from asyncjob_gateway.dashboard.routes.jobs import list_jobs
from asyncjob_gateway.dashboard.views.bulk import (
    BulkAction,
    bulk_report_page,
    confirmation_page,
    read_bulk_action,
)
from asyncjob_gateway.dashboard.views.filters import read_filters
from asyncjob_gateway.dashboard.views.job_list import make_job_list
from asyncjob_gateway.operations import Operations

router = APIRouter(prefix=f"{PREFIX}/dead-letters", route_class=PageRoute)
ROUTERS = (router,)

DEAD_LETTER_ROWS: Final = 100
_TIME_SHARE: Final = 0.6
"""The part of a request's time after which nothing more is begun: its answer is to tell of all."""


@router.get("")
async def show_dead_letters(request: Request) -> Response:
    """Show the dead letters that match."""
    room = await page_context(request, rights.LIST_JOBS)
    cursor = request.query_params.get("cursor", "")
    filters = read_filters(request.query_params, Phase.DEAD_LETTER)
    found = list_jobs(room, filters, cursor, DEAD_LETTER_ROWS)
    shown = make_job_list(
        found,
        filters,
        room.links,
        room.now,
        path="/dead-letters",
        cursor=cursor,
        what="dead letter",
    )
    return render_page("dead_letters.html", room.frame, shown, 422 if filters.errors else 200)


@router.post("/confirm")
async def confirm(request: Request) -> Response:
    """Say how many, and ask once more; nothing is done yet."""
    room, form = await form_context(request, rights.LIST_JOBS, rights.CONTROL_JOBS)
    asked = read_bulk_action(form)
    if asked is None:
        return see_other(room.links.to("/dead-letters", _list_query(form)))
    found = await _find_matching(room.request_context.operations, asked)
    return render_page("confirm.html", room.frame, confirmation_page(asked, found, room.links))


@router.post("/do")
async def run_bulk_action(request: Request) -> Response:
    """Do it, and say what became of each."""
    room, form = await form_context(request, rights.LIST_JOBS, rights.CONTROL_JOBS)
    asked = read_bulk_action(form)
    if asked is None:
        return see_other(room.links.to("/dead-letters", _list_query(form)))
    seconds = _TIME_SHARE * room.request_context.app.settings.request_timeout
    done = await _apply_action(room.request_context.operations, asked, seconds)
    return render_page("report.html", room.frame, bulk_report_page(asked, done, room.links))


def _list_query(form: Form) -> dict[str, str]:
    filters = read_filters(QueryParams(field_value(form, "filters")), Phase.DEAD_LETTER)
    return filters.given


async def _find_matching(operations: Operations, action: BulkAction) -> BulkReport:
    if not action.all:
        return BulkReport(matched=len(action.ids), done=list(action.ids), dry_run=True)
    return await operations.redrive_many(
        BulkAsk(selection=action.selection, limit=action.limit, dry_run=True)
    )


async def _apply_action(operations: Operations, action: BulkAction, seconds: float) -> BulkReport:
    found, late = await _find_matching(operations, action), asyncio.Event()
    act = operations.redrive if action.action == "redrive" else operations.dismiss
    timer = asyncio.get_running_loop().call_later(seconds, late.set)
    try:
        told = await apply_to_each(found.done, act, late)
    finally:
        timer.cancel()
    return BulkReport(
        matched=found.matched,
        done=[job_id for job_id, problem in told.items() if not problem],
        failed=[BulkFailure(id=job_id, detail=text) for job_id, text in told.items() if text],
    )
