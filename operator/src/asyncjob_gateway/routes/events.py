"""Changes as server-sent events: of all jobs that match, or of one.

- `job`: a job that matches has changed; data is its summary. The event's id is the version it was
  written under, the same on every replica.
- `deleted`: a job that matched is gone; data has its last summary.
- `resync`: changes were missed, by being away for too long or reading too slowly: list anew.

Who comes back with `Last-Event-ID`, as browsers do by themselves, gets what came since, if it is
still known. A stream of one job begins with the job as it is and ends when it has finished; a
browser that then comes back is told by 204 to stay away.
"""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from asyncjob.rest.selection import Selection
from asyncjob_gateway import kinds
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.clock import now
from asyncjob_gateway.cache.filters import compiled
from asyncjob_gateway.context import Visit, address_of
from asyncjob_gateway.events.changes import all_changes, one_job
from asyncjob_gateway.problems.declared import Responses, problems
from asyncjob_gateway.routes.listening import listener
from asyncjob_gateway.routes.parameters import JobId, LastEventId
from asyncjob_gateway.routes.route import ApiRoute, Namespace, admitting, visiting

router = APIRouter(prefix="/api/v1", tags=["events"], route_class=ApiRoute)

_STREAM: Final[Responses] = {
    200: {"content": {"text/event-stream": {}}, "description": "Events, as they come."}
}


class EventsQuery(Selection):
    """Filters, and of which namespace."""

    namespace: Namespace | None = None
    """Namespace of the jobs; the gateway's own if not given."""


@router.get(
    "/events",
    response_class=Response,
    responses={**_STREAM, **problems(kinds.NOT_SYNCED, kinds.THROTTLED)},
    summary="Follow changes of jobs",
)
async def follow_jobs(
    request: Request,
    query: Annotated[EventsQuery, Query()],
    visit: Annotated[Visit, admitting(rights.WATCH)],
    last: LastEventId = None,
) -> Response:
    """Stream changes of the jobs that match, from now on or from after `Last-Event-ID`.

    Events are `job`, `deleted` and `resync`; ages are measured as of the beginning.
    """
    visit.view.demand_synced()
    test = compiled(query, now())
    streams = visit.context.streams
    streams.check_room(visit.caller)
    since = None if last is None else int(last)
    who = listener(visit, request.headers, address_of(request))
    changes = all_changes(streams, visit.view.feed, who, test, since)
    return streams.answer(changes)


@router.get(
    "/jobs/{id}/events",
    response_class=Response,
    responses={
        **_STREAM,
        204: {"description": "It has finished, and who comes back has seen that."},
        **problems(kinds.NO_JOB, kinds.NOT_SYNCED, kinds.THROTTLED),
    },
    summary="Follow one job",
)
async def follow_job(
    request: Request,
    job_id: JobId,
    visit: Annotated[Visit, visiting(rights.WATCH)],
    last: LastEventId = None,
) -> Response:
    """Stream the job as it is, and then every change of it until it has finished or is deleted."""
    visit.view.demand_synced()
    job = await visit.operations.get(job_id)
    if last is not None and job.finished and int(job.resource_version) <= int(last):
        return Response(status_code=204)
    streams = visit.context.streams
    streams.check_room(visit.caller)
    return streams.answer(
        one_job(
            streams,
            visit.view.feed,
            listener(visit, request.headers, address_of(request)),
            lambda: visit.operations.get(job_id),
            job_id,
        )
    )
