"""Submitting a job by a form."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from asyncjob.client.errors import InTheWayError, InvalidSubmissionError
from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.entering import Room, act_in, look_in
from asyncjob_gateway.dashboard.forms import filled
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page import page, see
from asyncjob_gateway.dashboard.route import PageRoute
from asyncjob_gateway.dashboard.views.submission import FIELDS, SubmitForm, read_form, with_errors
from asyncjob_gateway.errors import RefusedError

router = APIRouter(prefix=f"{PREFIX}/submit", route_class=PageRoute)
ROUTERS = (router,)


@router.get("")
async def form(request: Request) -> Response:
    """Show the form; the address may fill fields in."""
    room = await look_in(request, rights.SUBMIT)
    query = request.query_params
    given = {name: query[name] for name in FIELDS if query.get(name)}
    return _form(room, SubmitForm(given), 200)


@router.post("")
async def submit(request: Request) -> Response:
    """Submit and show the job, or the form again with what is wrong."""
    room, form = await act_in(request, rights.SUBMIT)
    given = {name: text for name, text in filled(form).items() if name in FIELDS}
    read = read_form(given)
    if isinstance(read, SubmitForm):
        return _form(room, read, 422)
    try:
        done = await room.visit.operations.submit(read)
    except InvalidSubmissionError as error:
        return _form(room, with_errors(given, error), 422)
    except (InTheWayError, RefusedError) as error:
        return _form(room, SubmitForm(given, {}, str(error)), 409)
    return see(room.links.job(done.id, {"did": "submitted"}))


def _form(room: Room, view: SubmitForm, status: int) -> Response:
    known = room.visit.view
    queues = [queue.name for queue in known.queues(room.now)] if room.allowed.list_queues else []
    types = {kind for worker in known.workers(room.now) for kind in worker.types}
    shown = sorted(types) if room.allowed.list_queues else []
    return page("submit.html", room.frame, view, status, queues=queues, types=shown)
