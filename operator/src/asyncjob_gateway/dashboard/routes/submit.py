"""Submitting a job by a form."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from asyncjob.client.errors import InTheWayError, InvalidSubmissionError
from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.entering import PageContext, form_context, page_context
from asyncjob_gateway.dashboard.forms import nonempty_fields
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page import render_page, see_other
from asyncjob_gateway.dashboard.route import PageRoute
from asyncjob_gateway.dashboard.views.submission import (
    FIELDS,
    SubmitForm,
    read_submit_form,
    with_errors,
)
from asyncjob_gateway.errors import RefusedError

router = APIRouter(prefix=f"{PREFIX}/submit", route_class=PageRoute)
ROUTERS = (router,)


@router.get("")
async def show_submit_form(request: Request) -> Response:
    """Show the form; the address may fill fields in."""
    room = await page_context(request, rights.SUBMIT_JOBS)
    query = request.query_params
    given = {name: query[name] for name in FIELDS if query.get(name)}
    return _submit_page(room, SubmitForm(given), 200)


@router.post("")
async def submit(request: Request) -> Response:
    """Submit and show the job, or the form again with what is wrong."""
    room, form = await form_context(request, rights.SUBMIT_JOBS)
    given = {name: text for name, text in nonempty_fields(form).items() if name in FIELDS}
    read = read_submit_form(given)
    if isinstance(read, SubmitForm):
        return _submit_page(room, read, 422)
    try:
        done = await room.request_context.operations.submit(read)
    except InvalidSubmissionError as error:
        return _submit_page(room, with_errors(given, error), 422)
    except (InTheWayError, RefusedError) as error:
        return _submit_page(room, SubmitForm(given, {}, str(error)), 409)
    return see_other(room.links.job(done.id, {"did": "submitted"}))


def _submit_page(ctx: PageContext, view: SubmitForm, status: int) -> Response:
    known = ctx.request_context.cache
    queues = [queue.name for queue in known.queues(ctx.now)] if ctx.allowed.list_queues else []
    types = {kind for worker in known.workers(ctx.now) for kind in worker.types}
    shown = sorted(types) if ctx.allowed.list_queues else []
    return render_page("submit.html", ctx.frame, view, status, queues=queues, types=shown)
