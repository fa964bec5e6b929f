"""What is done to one job, queue or cron job by a button: done once, then shown."""

import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Final

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from asyncjob.rest.problem import FieldProblem
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.entering import act_in
from asyncjob_gateway.dashboard.forms import Form, one
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page import see
from asyncjob_gateway.dashboard.route import PageRoute
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.operations import Operations
from asyncjob_gateway.routes.parameters import JobId, QueueName

router = APIRouter(prefix=PREFIX, route_class=PageRoute)
ROUTERS = (router,)

PRIORITY: Final = 1000
_PRIORITY: Final = re.compile(r"-?[0-9]{1,4}")

Act = Callable[[Operations, str, Form], Awaitable[object]]


async def _cancel(operations: Operations, job_id: str, form: Form) -> object:
    return await operations.cancel(job_id, cascade=one(form, "cascade") == "yes")


async def _prioritise(operations: Operations, job_id: str, form: Form) -> object:
    text = one(form, "priority")
    if not _PRIORITY.fullmatch(text) or abs(int(text)) > PRIORITY:
        detail = f"a whole number from -{PRIORITY} to {PRIORITY}"
        raise RefusedError(
            kinds.INVALID, detail, errors=[FieldProblem(field="priority", detail=detail)]
        )
    return await operations.change(job_id, suspend=None, priority=int(text))


_ON_JOBS: Final[dict[str, tuple[Act, str]]] = {
    "cancel": (_cancel, "cancelled"),
    "redrive": (lambda operations, job_id, _: operations.redrive(job_id), "redriven"),
    "dismiss": (lambda operations, job_id, _: operations.dismiss(job_id), "dismissed"),
    "suspend": (
        lambda operations, job_id, _: operations.change(job_id, suspend=True, priority=None),
        "suspended",
    ),
    "resume": (
        lambda operations, job_id, _: operations.change(job_id, suspend=False, priority=None),
        "resumed",
    ),
    "priority": (_prioritise, "priority"),
}
_WISH = Annotated[str, Path(pattern=f"^({'|'.join(_ON_JOBS)})$")]


@router.post("/jobs/{id}/rerun")
async def rerun(request: Request, job_id: JobId) -> Response:
    """Run a job again, as a new one, and show that."""
    room, _ = await act_in(request, rights.CONTROL)
    done = await room.visit.operations.rerun(job_id)
    return see(room.links.job(done.id, {"did": "rerun", "soon": "1"}))


@router.post("/jobs/{id}/{wish}")
async def wish(request: Request, job_id: JobId, wish: _WISH) -> Response:
    """Do one of the other things, and show the job."""
    room, form = await act_in(request, rights.CONTROL)
    act, did = _ON_JOBS[wish]
    await act(room.visit.operations, job_id, form)
    return see(room.links.job(job_id, {"did": did}))


@router.post("/queues/{name}/{wish}")
async def queue(
    request: Request, name: QueueName, wish: Annotated[str, Path(pattern="^(pause|resume)$")]
) -> Response:
    """Pause a queue or let it go on."""
    room, _ = await act_in(request, rights.CONTROL_QUEUES)
    room.visit.view.demand_synced()
    await room.visit.operations.set_paused(name, paused=wish == "pause")
    did = "paused" if wish == "pause" else "unpaused"
    return see(room.links.to("/queues", {"did": did}))
