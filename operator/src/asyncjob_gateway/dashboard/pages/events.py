"""Tells a page that something it shows has changed; the page then fetches itself again.

What has changed is not sent: pages are rendered in one place only, and a follower may see no more
than the page shows.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Final

from fastapi import APIRouter, Request
from sse_starlette import ServerSentEvent
from starlette.datastructures import QueryParams
from starlette.responses import Response

from asyncjob.rest.listing import Selection
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.changes import ChangeBuffer, ChangeFilter
from asyncjob_gateway.cache.entries import CachedJob
from asyncjob_gateway.cache.listing import compile_selection
from asyncjob_gateway.clock import now
from asyncjob_gateway.context import address_of, request_context
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.page_route import PageRoute
from asyncjob_gateway.dashboard.security import auth_headers
from asyncjob_gateway.dashboard.views.filters import read_filters
from asyncjob_gateway.routes.events import make_stream_caller
from asyncjob_gateway.streams import RECONNECT_MILLISECONDS, StreamCaller, StreamLimiter, next_batch

router = APIRouter(prefix=PREFIX, route_class=PageRoute)
ROUTERS = (router,)

MIN_INTERVAL_SECONDS: Final = 0.4
"""Changes that come within this time are told of together."""

_CHANGEABLE_FILTERS: Final = ("phase", "reason", "label", "text")
"""Filters by what a job may cease to be: one that leaves the page has to be seen to leave it."""


@router.get("/events")
async def stream_page_changes(request: Request) -> Response:
    """Stream that jobs have changed: all that match the filters, or one job and its relatives."""
    query = request.query_params
    ctx = await request_context(request, query.get("namespace") or None, rights.WATCH_JOBS)
    ctx.cache.require_synced()
    streams = ctx.app.streams
    streams.check_capacity(ctx.caller)
    job_id = query.get("job", "")
    wanted = _concerns_job(job_id) if job_id else _matches_filters(query)
    who = make_stream_caller(ctx, auth_headers(request), address_of(request))
    return streams.response(_change_events(streams, ctx.cache.changes, who, wanted))


async def _change_events(
    streams: StreamLimiter, buffer: ChangeBuffer, stream_caller: StreamCaller, matches: ChangeFilter
) -> AsyncGenerator[ServerSentEvent]:
    with streams.counting(stream_caller.caller), buffer.subscribe(matches) as follower:
        # A page that comes back after a pause cannot know what it has missed.
        yield ServerSentEvent(data="", event="change", retry=RECONNECT_MILLISECONDS)
        while await next_batch(streams, follower, stream_caller):
            yield ServerSentEvent(data="", event="change")
            with suppress(TimeoutError):
                await asyncio.wait_for(streams.stopping.wait(), MIN_INTERVAL_SECONDS)


def _concerns_job(job_id: str) -> ChangeFilter:
    def wanted(entry: CachedJob) -> bool:
        return job_id in {entry.summary.id, entry.parent, entry.rerun_of}

    return lambda change: wanted(change.job)


def _matches_filters(query: QueryParams) -> ChangeFilter:
    selection = read_filters(query).selection or Selection()
    free = selection.model_copy(update=dict.fromkeys(_CHANGEABLE_FILTERS))
    test = compile_selection(free, now())
    return lambda change: test is None or test(change.job)
