"""The page of all queues.

Also the way from the dashboard's root to the first page that the reader may see.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.rest.jobs import JobSummary
from asyncjob.rest.resources import QueueInfo
from asyncjob_gateway.auth import rights
from asyncjob_gateway.dashboard.formatting import DisplayTime, display_time, timestamp_minutes_ago
from asyncjob_gateway.dashboard.layout import QUEUES_SECTION, render_page, see_other
from asyncjob_gateway.dashboard.links import PREFIX, Links
from asyncjob_gateway.dashboard.page_context import page_context
from asyncjob_gateway.dashboard.page_route import PageRoute
from asyncjob_gateway.dashboard.views.rows import PhaseBadge, phase_badge

_LIVE_PHASES: Final = (Phase.QUEUED, Phase.RUNNING, Phase.RETRYING, Phase.PENDING, Phase.SCHEDULED)
_PHASE_COLUMNS: Final = (*_LIVE_PHASES, Phase.DEAD_LETTER)


@dataclass(slots=True)
class QueueCounts:
    """What is counted over all jobs: since when the oldest is queued, and what finished lately."""

    oldest: dict[str, str] = field(default_factory=dict)
    finished: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class PhaseLink:
    """The number of jobs in a phase, and the list of them."""

    mark: PhaseBadge
    number: int
    url: str


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue."""

    name: str
    url: str
    paused: bool
    drained: bool
    counts: list[PhaseLink]
    oldest: DisplayTime | None
    workers: int
    slots: int
    busy: int
    stuck: bool
    finished: int
    limits: str


@dataclass(frozen=True, slots=True)
class QueuesPage:
    """All queues, and their jobs together."""

    queues: list[QueueRow]
    totals: list[PhaseLink]
    events: str


def count_jobs(jobs: Iterable[JobSummary], now: datetime) -> QueueCounts:
    """Count, in one go: there may be tens of thousands."""
    counted, since = QueueCounts(), timestamp_minutes_ago(now, 1)
    for job in jobs:
        if job.phase is Phase.QUEUED:
            at = job.updated_at or job.created_at
            if at < counted.oldest.get(job.queue, "~"):
                counted.oldest[job.queue] = at
        elif job.phase in FINISHED_PHASES and (job.completed_at or "") >= since:
            counted.finished[job.queue] += 1
    return counted


def make_queues_page(
    queues: Iterable[QueueInfo], counted: QueueCounts, links: Links, now: datetime
) -> QueuesPage:
    """Return the view."""
    known = list(queues)
    totals: Counter[str] = Counter()
    for queue in known:
        totals.update(queue.counts)
    return QueuesPage(
        queues=[_queue_row(queue, counted, links, now) for queue in known],
        totals=_phase_counts(totals, tuple(Phase), links, ""),
        events=links.to("/events"),
    )


def _queue_row(queue: QueueInfo, counted: QueueCounts, links: Links, now: datetime) -> QueueRow:
    waiting = queue.counts.get(Phase.QUEUED.value, 0)
    return QueueRow(
        name=queue.name,
        url=links.jobs(queue=queue.name),
        paused=queue.paused,
        drained=queue.drained,
        counts=_phase_counts(queue.counts, _PHASE_COLUMNS, links, queue.name),
        oldest=display_time(counted.oldest.get(queue.name), now),
        workers=queue.workers,
        slots=queue.slots,
        busy=queue.counts.get(Phase.RUNNING.value, 0),
        stuck=bool(waiting and not queue.workers and not queue.paused),
        finished=counted.finished[queue.name],
        limits=_limits_text(queue),
    )


def _phase_counts(
    counts: Mapping[str, int], phases: tuple[Phase, ...], links: Links, queue: str
) -> list[PhaseLink]:
    return [
        PhaseLink(
            phase_badge(one), counts.get(one.value, 0), links.jobs(phase=one.value, queue=queue)
        )
        for one in phases
    ]


def _limits_text(queue: QueueInfo) -> str:
    spec = queue.spec
    if spec is None:
        return ""
    given = (
        (spec.max_concurrency, "at once"),
        (spec.max_concurrency_per_key, "at once per key"),
        (spec.max_queued, "waiting at most"),
    )
    words = [f"{number:,} {what}" for number, what in given if number is not None]
    if spec.rate_limit:
        words.append(f"{spec.rate_limit.count:,} starts per {spec.rate_limit.period_seconds} s")
    return ", ".join(words)


router = APIRouter(prefix=PREFIX, route_class=PageRoute)
ROUTERS = (router,)


@router.get("")
@router.get("/")
async def redirect_to_first_page(request: Request) -> Response:
    """Go to the first page that the reader may see."""
    ctx = await page_context(request)
    return see_other(ctx.links.to([*ctx.frame.sections, QUEUES_SECTION][0].path))


@router.get("/queues")
async def show_queues(request: Request) -> Response:
    """Show all queues."""
    ctx = await page_context(request, rights.LIST_QUEUES)
    view = ctx.request_context.cache
    view.require_synced()
    counted = count_jobs((entry.summary for entry in view.jobs.newest_first()), ctx.now)
    shown = make_queues_page(view.queues(ctx.now), counted, ctx.links, ctx.now)
    return render_page("queues.html", ctx.frame, shown)
