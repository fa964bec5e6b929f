"""Arrays in a list and on a page of their own. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from asyncjob.lifecycle.arrays.chunks import chunk_type
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.lifecycle.timestamps import try_parse_timestamp
from asyncjob.models.array import AsyncArraySpec, ItemFailure
from asyncjob.names import ARRAY_LABEL
from asyncjob.rest.arrays import ArrayInfo, ArrayPage, items_per_second, seconds_left
from asyncjob.rest.item_states import ItemState, item_states
from asyncjob_gateway.dashboard.formatting import (
    DisplayTime,
    display_time,
    format_duration,
    format_json,
    plural,
)
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.permissions import Permissions
from asyncjob_gateway.dashboard.views.job import Fact
from asyncjob_gateway.dashboard.views.rows import PhaseBadge

MAX_RANGE_CHARACTERS: Final = 1000
"""Characters of item numbers that are shown; REST has all of them."""

REFRESH_SECONDS: Final = 3
ENDED_REFRESH_SECONDS: Final = 15
"""How often a page fetches itself again: no stream says that an array has changed."""

_BADGES: Final = {
    ArrayPhase.PENDING: PhaseBadge("Pending", "pending", "No chunk of it has been created yet."),
    ArrayPhase.RUNNING: PhaseBadge("Running", "running", "Its items are run, chunk by chunk."),
    ArrayPhase.SUCCEEDED: PhaseBadge(
        "Succeeded", "succeeded", "All items are done, but for those that may fail."
    ),
    ArrayPhase.FAILED: PhaseBadge(
        "Failed", "dead", "It has stopped, and its reason says why; it can be redriven."
    ),
    ArrayPhase.CANCELLED: PhaseBadge("Cancelled", "cancelled", "It was cancelled."),
}


@dataclass(frozen=True, slots=True)
class ArrayRow:
    """One array of a list."""

    name: str
    uid: str
    url: str
    type: str
    queue: str
    queue_url: str
    mark: PhaseBadge
    cancelling: bool
    redriving: bool
    suspended: bool
    total: int
    succeeded: int
    failed: int
    percent: int
    open_chunks: int
    rate: str
    left: str
    why: str
    reason: str
    created: DisplayTime | None

    @property
    def id(self) -> str:
        """What its progress is labelled with, as that of a job is."""
        return self.name


@dataclass(frozen=True, slots=True)
class ArrayList:
    """Rows, and where the next ones are."""

    rows: list[ArrayRow]
    count: str
    next: str
    newest: str


@dataclass(frozen=True, slots=True)
class ArrayOffers:
    """The buttons that are shown."""

    cancel: bool
    suspend: bool
    resume: bool
    redrive: bool

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return self.cancel or self.suspend or self.resume or self.redrive


@dataclass(frozen=True, slots=True)
class ArrayDetail:
    """An array with everything."""

    row: ArrayRow
    refresh_seconds: int
    path: str
    chunks_url: str
    offers: ArrayOffers
    started: DisplayTime | None
    ended: DisplayTime | None
    took: str
    states: list[ItemState]
    unlisted: int
    errors: Sequence[ItemFailure]
    facts: list[Fact]
    labels: list[Fact]
    payload: str
    payload_was_cut: bool
    payload_hidden: bool


def make_array_list(page: ArrayPage, links: Links, now: datetime, *, cursor: str) -> ArrayList:
    """Return the view of a page of the list; `cursor` is where it begins."""
    if page.total is None or cursor:
        count = f"{plural(len(page.items), 'older array')} on this page"
    elif page.next:
        count = f"newest {len(page.items):,} of {plural(page.total, 'array')}"
    else:
        count = plural(page.total, "array")
    return ArrayList(
        rows=[_array_row(one, links, now) for one in page.items],
        count=count,
        next=links.to("/arrays", {"cursor": page.next}) if page.next else "",
        newest=links.to("/arrays") if cursor else "",
    )


def _array_row(array: ArrayInfo, links: Links, now: datetime) -> ArrayRow:
    rate, left = items_per_second(array, now), seconds_left(array, now)
    return ArrayRow(
        name=array.name,
        uid=array.uid,
        url=links.array(array.name),
        type=array.type,
        queue=array.queue,
        queue_url=links.jobs(queue=array.queue),
        mark=_BADGES[array.phase],
        cancelling=array.cancelling,
        redriving=array.redriving,
        suspended=array.suspended and not array.finished,
        total=array.total,
        succeeded=array.succeeded,
        failed=array.failed,
        percent=array.percent,
        open_chunks=array.open_chunks,
        rate="" if rate is None else _rate_text(rate),
        left="" if left is None else format_duration(left),
        why=array.message or "",
        reason=array.reason or "",
        created=display_time(array.created_at, now),
    )


def _rate_text(rate: float) -> str:
    return f"{rate:,.0f} items/s" if rate >= 10 else f"{rate:.2g} items/s"  # noqa: PLR2004 - two digits


def make_array_page(
    array: ArrayInfo, allowed: Permissions, links: Links, now: datetime
) -> ArrayDetail:
    """Return the view of an array that was read with its spec and status."""
    spec, status = array.spec, array.status
    text, was_cut = ("", False)
    if spec and spec.payload is not None:
        text, was_cut = format_json(spec.payload)
    type_ = chunk_type(array.type, has_results=bool(array.results))
    chunks = links.jobs(type=type_, label=f"{ARRAY_LABEL}={array.uid}")
    return ArrayDetail(
        row=_array_row(array, links, now),
        refresh_seconds=ENDED_REFRESH_SECONDS if array.finished else REFRESH_SECONDS,
        path=f"/arrays/{array.name}",
        chunks_url=chunks if allowed.list_jobs else "",
        offers=_offers(array, allowed),
        started=display_time(array.started_at, now),
        ended=display_time(array.completed_at, now),
        took=_took(array),
        states=[replace(one, items=_cut(one.items)) for one in item_states(array)],
        unlisted=(status.failed_unlisted or 0) if status else 0,
        errors=(status.errors or []) if status else [],
        facts=list(_facts(array, links, now)),
        labels=[Fact(name, value) for name, value in sorted(array.labels.items())],
        payload=text,
        payload_was_cut=was_cut,
        payload_hidden=not allowed.read_payload,
    )


def _offers(array: ArrayInfo, allowed: Permissions) -> ArrayOffers:
    may = allowed.control_arrays
    goes_on = may and not array.finished and not array.cancelling
    return ArrayOffers(
        cancel=goes_on,
        suspend=goes_on and not array.suspended,
        resume=goes_on and array.suspended,
        redrive=may and array.phase is ArrayPhase.FAILED and not array.redriving,
    )


def _cut(text: str) -> str:
    if len(text) <= MAX_RANGE_CHARACTERS:
        return text
    return text[:MAX_RANGE_CHARACTERS].rpartition(",")[0] + ", …"


def _took(array: ArrayInfo) -> str:
    began, ended = (try_parse_timestamp(at or "") for at in (array.started_at, array.completed_at))
    return format_duration((ended - began).total_seconds()) if began and ended else ""


def _chunk_size(array: ArrayInfo) -> str:
    chosen = array.spec.chunk_size if array.spec else None
    if chosen is not None:
        return f"{chosen:,}"
    size = array.status.chunk_size if array.status else None
    return f"{size:,}, adapts" if size else "adapts"


def _failures_allowed(spec: AsyncArraySpec) -> Iterator[Fact]:
    if spec.max_failed is not None:
        yield Fact("Items that may fail", f"{spec.max_failed:,}")
    if spec.max_failed_percent is not None:
        yield Fact("Items that may fail", f"{spec.max_failed_percent} %")


def _facts(array: ArrayInfo, links: Links, now: datetime) -> Iterator[Fact]:
    spec = array.spec
    yield Fact("Type", array.type)
    yield Fact("Queue", array.queue, links.jobs(queue=array.queue))
    if spec is None:
        return
    if spec.priority:
        yield Fact("Priority", str(spec.priority))
    if spec.not_before:
        yield Fact("Not before", time=display_time(spec.not_before, now))
    for one in spec.depends_on or ():
        yield Fact("Depends on", one.called, links.dependency(one))
    if array.skipped:
        yield Fact("Done before", f"{plural(array.skipped, 'item')}, counted and not run")
    yield Fact("Items in a chunk", _chunk_size(array))
    yield Fact("Chunks at once", f"at most {spec.parallelism:,}")
    yield from _failures_allowed(spec)
    if spec.items.from_ is not None:
        yield Fact("Items from", spec.items.from_.uri)
    if array.results:
        yield Fact("Results in", array.results)
