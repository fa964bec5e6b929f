"""The list of dead letters.

Many are redriven or dismissed at once, after a confirmation that names how many. All of it happens
within one request, whose time is limited.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request
from starlette.datastructures import QueryParams
from starlette.responses import Response

from asyncjob.errors import AsyncJobError
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.listing import BulkAsk, BulkFailure, BulkReport, Selection
from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.formatting import plural
from asyncjob_gateway.dashboard.layout import render_page, see_other
from asyncjob_gateway.dashboard.links import PREFIX, Links
from asyncjob_gateway.dashboard.page_context import form_context, page_context
from asyncjob_gateway.dashboard.page_route import PageRoute
from asyncjob_gateway.dashboard.pages.jobs import list_jobs, make_job_list
from asyncjob_gateway.dashboard.security import Form, field_value
from asyncjob_gateway.dashboard.views.filters import Filters, read_filters
from asyncjob_gateway.operations import Operations
from asyncjob_gateway.problems import to_refused_error

MAX_BULK_JOBS: Final = 1000
"""Most dead letters of one action: what a request has time for."""

MAX_LISTED_NAMES: Final = 20
"""Names that the question and the report show."""

_LIMIT_PATTERN: Final = re.compile(r"[1-9][0-9]{0,5}")
_PAST_TENSE: Final = {"redrive": "redriven", "dismiss": "dismissed"}


@dataclass(frozen=True, slots=True)
class BulkForm:
    """Redrive or dismiss: these, or all that match the filters, `limit` at most."""

    action: str
    all: bool
    ids: tuple[str, ...]
    filters: Filters
    written: str
    limit: int = MAX_BULK_JOBS

    @property
    def selection(self) -> Selection:
        """Which are meant, where all that match are."""
        return self.filters.selection or Selection()


@dataclass(frozen=True, slots=True)
class ConfirmationPage:
    """The question."""

    bulk: BulkForm
    count: int
    matched: int
    question: str
    button: str
    names: list[str]
    unnamed: int
    back: str


@dataclass(frozen=True, slots=True)
class BulkReportPage:
    """What became of it."""

    title: str
    failed: list[tuple[str, str, str]]
    unnamed: int
    left: int
    back: str


def read_bulk_form(form: Form) -> BulkForm | None:
    """Return what a form asks for; None where that is nothing."""
    action, _, scope = field_value(form, "action").partition("-")
    written = field_value(form, "filters")
    filters = read_filters(QueryParams(written), Phase.DEAD_LETTER)
    ids = tuple(dict.fromkeys(filter(None, form.get("id", []))))[:MAX_BULK_JOBS]
    everything = scope == "all"
    meant = filters.selection is not None if everything else bool(ids)
    if action not in _PAST_TENSE or not meant:
        return None
    return BulkForm(
        action, everything, () if everything else ids, filters, written, _read_limit(form)
    )


def _read_limit(form: Form) -> int:
    text = field_value(form, "limit")
    return min(MAX_BULK_JOBS, int(text)) if _LIMIT_PATTERN.fullmatch(text) else MAX_BULK_JOBS


def confirmation_page(action: BulkForm, matching: BulkReport, links: Links) -> ConfirmationPage:
    """Return the question about those that were found."""
    count = len(matching.done)
    what = plural(count, "dead letter")
    verb = action.action.capitalize()
    return ConfirmationPage(
        bulk=action,
        count=count,
        matched=matching.matched,
        question=f"{verb} {what}?",
        button=f"{verb} {what}",
        names=matching.done[:MAX_LISTED_NAMES],
        unnamed=max(0, count - MAX_LISTED_NAMES),
        back=_back_url(action, links),
    )


def bulk_report_page(action: BulkForm, done: BulkReport, links: Links) -> BulkReportPage:
    """Return what became of each."""
    failed = [(one.id, links.job(one.id), one.detail) for one in done.failed]
    title = f"{plural(len(done.done), 'dead letter')} {_PAST_TENSE[action.action]}"
    more = f", {len(failed):,} not" if failed else ""
    left = max(0, done.matched - len(done.done) - len(failed))
    return BulkReportPage(
        title + more,
        failed[:MAX_LISTED_NAMES],
        max(0, len(failed) - MAX_LISTED_NAMES),
        left,
        _back_url(action, links),
    )


def _back_url(action: BulkForm, links: Links) -> str:
    return links.to("/dead-letters", action.filters.given)


BULK_CONCURRENCY: Final = 8
"""Requests at the same time of one bulk action; of the connections to the API server (64) most stay
free for others."""


async def apply_to_each(
    ids: Sequence[str], action: Callable[[str], Awaitable[object]], deadline_passed: asyncio.Event
) -> dict[str, str]:
    """Do it to each, some at the same time; return what went wrong, empty where nothing did.

    Once `deadline_passed` is set, no other is begun; those are left as they are and not answered
    for.
    """
    told: dict[str, str] = {}
    slots = asyncio.Semaphore(BULK_CONCURRENCY)

    async def one(job_id: str) -> None:
        async with slots:
            if not deadline_passed.is_set():
                told[job_id] = await _apply(action, job_id)

    async with asyncio.TaskGroup() as group:
        for job_id in ids:
            group.create_task(one(job_id))
    return told


async def _apply(action: Callable[[str], Awaitable[object]], job_id: str) -> str:
    try:
        await action(job_id)
    except AsyncJobError as error:
        return to_refused_error(error).detail
    return ""


router = APIRouter(prefix=f"{PREFIX}/dead-letters", route_class=PageRoute)
ROUTERS = (router,)

DEAD_LETTER_ROWS: Final = 100
_TIME_SHARE: Final = 0.6
"""The part of a request's time after which nothing more is begun: its answer is to tell of all."""


@router.get("")
async def show_dead_letters(request: Request) -> Response:
    """Show the dead letters that match."""
    ctx = await page_context(request, rights.LIST_JOBS)
    cursor = request.query_params.get("cursor", "")
    filters = read_filters(request.query_params, Phase.DEAD_LETTER)
    found = list_jobs(ctx, filters, cursor, DEAD_LETTER_ROWS)
    shown = make_job_list(
        found,
        filters,
        ctx.links,
        ctx.now,
        path="/dead-letters",
        cursor=cursor,
        what="dead letter",
    )
    return render_page("dead_letters.html", ctx.frame, shown, 422 if filters.errors else 200)


@router.post("/confirm")
async def confirm(request: Request) -> Response:
    """Say how many, and ask once more; nothing is done yet."""
    ctx, form = await form_context(request, rights.LIST_JOBS, rights.CONTROL_JOBS)
    bulk = read_bulk_form(form)
    if bulk is None:
        return see_other(ctx.links.to("/dead-letters", _list_query(form)))
    found = await _find_matching(ctx.request_context.operations, bulk)
    return render_page("confirm.html", ctx.frame, confirmation_page(bulk, found, ctx.links))


@router.post("/do")
async def run_bulk_action(request: Request) -> Response:
    """Do it, and say what became of each."""
    ctx, form = await form_context(request, rights.LIST_JOBS, rights.CONTROL_JOBS)
    bulk = read_bulk_form(form)
    if bulk is None:
        return see_other(ctx.links.to("/dead-letters", _list_query(form)))
    seconds = _TIME_SHARE * ctx.request_context.app.settings.request_timeout
    done = await _apply_action(ctx.request_context.operations, bulk, seconds)
    return render_page("report.html", ctx.frame, bulk_report_page(bulk, done, ctx.links))


def _list_query(form: Form) -> dict[str, str]:
    filters = read_filters(QueryParams(field_value(form, "filters")), Phase.DEAD_LETTER)
    return filters.given


async def _find_matching(operations: Operations, action: BulkForm) -> BulkReport:
    if not action.all:
        return BulkReport(matched=len(action.ids), done=list(action.ids), dry_run=True)
    return await operations.redrive_many(
        BulkAsk(selection=action.selection, limit=action.limit, dry_run=True)
    )


async def _apply_action(operations: Operations, action: BulkForm, seconds: float) -> BulkReport:
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
