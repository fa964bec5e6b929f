"""Changes as server-sent events: of all jobs that match, or of one.

- `job`: a job that matches has changed; data is its summary. The event's id is the version it was
  written under, the same on every replica.
- `deleted`: a job that matched is gone; data has its last summary.
- `resync`: changes were missed, by being away for too long or reading too slowly: list again.

Clients that return with `Last-Event-ID`, as browsers do by themselves, get what came since, if it
is still known. A stream of one job begins with the job as it is and ends when it has finished; a
browser that then returns is told by 204 to stay away.
"""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from starlette.datastructures import Headers
from starlette.responses import Response

from asyncjob.errors import AsyncJobError
from asyncjob.rest.listing import Selection
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.listing import compile_selection
from asyncjob_gateway.clock import now
from asyncjob_gateway.context import RequestContext, address_of
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.openapi import Responses, problem_responses
from asyncjob_gateway.routes.api_route import (
    ApiRoute,
    JobId,
    LastEventId,
    Namespace,
    authorized,
    authorized_with_own_query,
)
from asyncjob_gateway.streams import StreamCaller, stream_changes, stream_job

_ENDS_STREAM: Final = (problem_types.UNAUTHENTICATED, problem_types.FORBIDDEN)


def make_stream_caller(ctx: RequestContext, headers: Headers, address: str) -> StreamCaller:
    """Return who follows, by the headers and the address that said who asks.

    Where nobody can be asked whether they still may, they still do.
    """

    async def stands() -> bool:
        try:
            await ctx.app.authenticator.authenticate(headers, address)
            await ctx.require(rights.WATCH_JOBS)
        except RefusedError as error:
            return error.kind not in _ENDS_STREAM
        except AsyncJobError:
            return True
        return True

    return StreamCaller(ctx.caller, stands)


router = APIRouter(prefix="/api/v1", tags=["events"], route_class=ApiRoute)

_STREAM_RESPONSE: Final[Responses] = {
    200: {"content": {"text/event-stream": {}}, "description": "Events, as they come."}
}


class EventsQuery(Selection):
    """Filters, and of which namespace."""

    namespace: Namespace | None = None
    """Namespace of the jobs; the gateway's own if not given."""


@router.get(
    "/events",
    response_class=Response,
    responses={
        **_STREAM_RESPONSE,
        **problem_responses(problem_types.NOT_SYNCED, problem_types.THROTTLED),
    },
    summary="Follow changes of jobs",
)
async def follow_jobs(
    request: Request,
    query: Annotated[EventsQuery, Query()],
    ctx: Annotated[RequestContext, authorized_with_own_query(rights.WATCH_JOBS)],
    last: LastEventId = None,
) -> Response:
    """Stream changes of the jobs that match, from now on or from after `Last-Event-ID`.

    Events are `job`, `deleted` and `resync`; ages are measured as of the beginning.
    """
    ctx.cache.require_synced()
    test = compile_selection(query, now())
    streams = ctx.app.streams
    streams.check_capacity(ctx.caller)
    since = None if last is None else int(last)
    who = make_stream_caller(ctx, request.headers, address_of(request))
    changes = stream_changes(streams, ctx.cache.changes, who, test, since)
    return streams.response(changes)


@router.get(
    "/jobs/{id}/events",
    response_class=Response,
    responses={
        **_STREAM_RESPONSE,
        204: {"description": "It has finished, and who comes back has seen that."},
        **problem_responses(
            problem_types.NO_JOB, problem_types.NOT_SYNCED, problem_types.THROTTLED
        ),
    },
    summary="Follow one job",
)
async def follow_job(
    request: Request,
    job_id: JobId,
    ctx: Annotated[RequestContext, authorized(rights.WATCH_JOBS)],
    last: LastEventId = None,
) -> Response:
    """Stream the job as it is, and then every change of it until it has finished or is deleted."""
    ctx.cache.require_synced()
    job = await ctx.operations.get(job_id)
    if last is not None and job.finished and int(job.resource_version) <= int(last):
        return Response(status_code=204)
    streams = ctx.app.streams
    streams.check_capacity(ctx.caller)
    return streams.response(
        stream_job(
            streams,
            ctx.cache.changes,
            make_stream_caller(ctx, request.headers, address_of(request)),
            lambda: ctx.operations.get(job_id),
            job_id,
        )
    )
