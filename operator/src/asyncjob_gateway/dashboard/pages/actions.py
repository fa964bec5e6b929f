"""What the buttons do to one job or queue: done once, then the page is shown again."""

import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Final

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from asyncjob.free_json import FreeJsonError, parse
from asyncjob.json_types import Json
from asyncjob.lifecycle.policy import MAX_PRIORITY
from asyncjob.rest.problem import FieldProblem
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.layout import see_other
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page_context import form_context
from asyncjob_gateway.dashboard.page_route import PageRoute
from asyncjob_gateway.dashboard.security import Form, field_value
from asyncjob_gateway.dashboard.views.signal_forms import InputError, read_inputs
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.operations import Operations
from asyncjob_gateway.routes.api_route import JobId, QueueName

router = APIRouter(prefix=PREFIX, route_class=PageRoute)
ROUTERS = (router,)

_PRIORITY_PATTERN: Final = re.compile(r"-?[0-9]{1,4}")

JobAction = Callable[[Operations, str, Form], Awaitable[object]]


async def _cancel(operations: Operations, job_id: str, form: Form) -> object:
    return await operations.cancel(job_id, cascade=field_value(form, "cascade") == "yes")


async def _set_priority(operations: Operations, job_id: str, form: Form) -> object:
    text = field_value(form, "priority")
    if not _PRIORITY_PATTERN.fullmatch(text) or abs(int(text)) > MAX_PRIORITY:
        detail = f"must be an integer from -{MAX_PRIORITY} to {MAX_PRIORITY}"
        raise RefusedError(
            problem_types.INVALID, detail, errors=[FieldProblem(field="priority", detail=detail)]
        )
    return await operations.change(job_id, suspend=None, priority=int(text))


_JOB_ACTIONS: Final[dict[str, tuple[JobAction, str]]] = {
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
    "priority": (_set_priority, "priority"),
}
_JobActionName = Annotated[str, Path(pattern=f"^({'|'.join(_JOB_ACTIONS)})$")]


@router.post("/jobs/{id}/rerun")
async def rerun(request: Request, job_id: JobId) -> Response:
    """Run a job again, as a new one, and show that."""
    ctx, _ = await form_context(request, rights.CONTROL_JOBS)
    done = await ctx.request_context.operations.rerun(job_id)
    return see_other(ctx.links.job(done.id, {"did": "rerun", "soon": "1"}))


@router.post("/jobs/{id}/signal")
async def send_signal(request: Request, job_id: JobId) -> Response:
    """Send a job a signal in the reader's name, and show the job."""
    ctx, form = await form_context(request, rights.signal_job(job_id))
    name = field_value(form, "name")
    payload = _read_payload(form)
    reader = ctx.request_context
    await reader.operations.signal(
        job_id, name, payload, sender=reader.caller.username, uid=field_value(form, "uid") or None
    )
    return see_other(ctx.links.job(job_id, {"did": "signalled"}))


def _read_payload(form: Form) -> Json:
    """Return what the signal is to say, from the inputs of a form, or from JSON as it stands."""
    try:
        if schema := field_value(form, "schema"):
            return read_inputs(parse(schema.encode(), what="the schema"), form)
        text = field_value(form, "payload")
        return parse(text.encode(), what="it", unique_keys=True) if text else None
    except InputError as error:
        problem = FieldProblem(field=error.field, detail=error.detail)
        raise RefusedError(problem_types.INVALID, str(error), errors=[problem]) from error
    except (FreeJsonError, UnicodeEncodeError) as error:
        problem = FieldProblem(field="payload", detail=str(error))
        raise RefusedError(problem_types.INVALID, str(error), errors=[problem]) from error


@router.post("/jobs/{id}/{action}")
async def act_on_job(request: Request, job_id: JobId, action: _JobActionName) -> Response:
    """Do one of the other things, and show the job."""
    ctx, form = await form_context(request, rights.CONTROL_JOBS)
    act, did = _JOB_ACTIONS[action]
    await act(ctx.request_context.operations, job_id, form)
    return see_other(ctx.links.job(job_id, {"did": did}))


@router.post("/queues/{name}/{action}")
async def act_on_queue(
    request: Request, name: QueueName, action: Annotated[str, Path(pattern="^(pause|resume)$")]
) -> Response:
    """Pause a queue or let it go on."""
    ctx, _ = await form_context(request, rights.CONTROL_QUEUES)
    ctx.request_context.cache.require_synced()
    await ctx.request_context.operations.set_paused(name, paused=action == "pause")
    did = "paused" if action == "pause" else "unpaused"
    return see_other(ctx.links.to("/queues", {"did": did}))
