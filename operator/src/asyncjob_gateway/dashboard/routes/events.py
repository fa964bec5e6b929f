"""Tells a page that something it shows has changed; the page then fetches itself anew.

What has changed is not sent: pages are made in one place only, and whoever follows may see no more
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

from asyncjob.rest.selection import Selection
from asyncjob_gateway.auth import rights
from asyncjob_gateway.cache.clock import now
from asyncjob_gateway.cache.entry import Entry
from asyncjob_gateway.cache.feed import Feed, Wanted
from asyncjob_gateway.cache.filters import compiled
from asyncjob_gateway.context import address_of, enter
from asyncjob_gateway.dashboard.cookies import headers_of
from asyncjob_gateway.dashboard.links import PREFIX
from asyncjob_gateway.dashboard.route import PageRoute
from asyncjob_gateway.dashboard.views.filters import read_filters
from asyncjob_gateway.events.changes import next_given
from asyncjob_gateway.events.listener import Listener
from asyncjob_gateway.events.streams import AGAIN_MILLISECONDS, Streams
from asyncjob_gateway.routes.listening import listener

router = APIRouter(prefix=PREFIX, route_class=PageRoute)
ROUTERS = (router,)

PACE_SECONDS: Final = 0.4
"""Changes that come within so long are told of together."""

_CHANGING: Final = ("phase", "reason", "label", "text")
"""Filters by what a job may cease to be: one that leaves the page has to be seen to leave it."""


@router.get("/events")
async def events(request: Request) -> Response:
    """Stream that jobs have changed: all that match the filters, or one job and its relatives."""
    query = request.query_params
    visit = await enter(request, query.get("namespace") or None, rights.WATCH)
    visit.view.demand_synced()
    streams = visit.context.streams
    streams.check_room(visit.caller)
    job_id = query.get("job", "")
    wanted = _about(job_id) if job_id else _matching(query)
    who = listener(visit, headers_of(request), address_of(request))
    return streams.answer(_changes(streams, visit.view.feed, who, wanted))


async def _changes(
    streams: Streams, feed: Feed, who: Listener, wanted: Wanted
) -> AsyncGenerator[ServerSentEvent]:
    with streams.counted(who.caller), feed.follow(wanted) as follower:
        # A page that comes back after a pause cannot know what it has missed.
        yield ServerSentEvent(data="", event="change", retry=AGAIN_MILLISECONDS)
        while await next_given(streams, follower, who):
            yield ServerSentEvent(data="", event="change")
            with suppress(TimeoutError):
                await asyncio.wait_for(streams.stopping.wait(), PACE_SECONDS)


def _about(job_id: str) -> Wanted:
    def wanted(entry: Entry) -> bool:
        return job_id in {entry.summary.id, entry.parent, entry.rerun_of}

    return lambda change: wanted(change.entry)


def _matching(query: QueryParams) -> Wanted:
    selection = read_filters(query).selection or Selection()
    free = selection.model_copy(update=dict.fromkeys(_CHANGING))
    test = compiled(free, now())
    return lambda change: test is None or test(change.entry)
