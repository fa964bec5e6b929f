"""Selects jobs for a list or a bulk action: filters, order and cursors. Pure."""

import base64
import binascii
from datetime import datetime, timedelta
from typing import Annotated, cast

from pydantic import Field

from asyncjob.json_text import dumps, loads
from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.timestamps import try_parse_timestamp
from asyncjob.models.base import JobType, QueueName
from asyncjob.names import PARENT_NAME_ANNOTATION
from asyncjob.rest.base import RequestModel, ResponseModel
from asyncjob.rest.jobs import JobSummary

DEFAULT_PAGE_SIZE = 50
"""Jobs on a page unless told otherwise."""

MAX_PAGE_SIZE = 500
"""Most jobs on a page."""

MAX_BULK_JOBS = 10_000
"""Most jobs that one bulk action touches."""


class Selection(RequestModel):
    """Filters; a job has to match all that are set."""

    phase: Annotated[list[Phase], Field(max_length=8)] | None = None
    """Phases, any of them."""

    type: JobType | None = None
    """Type of the job."""

    queue: QueueName | None = None
    """Its queue."""

    label: Annotated[str, Field(max_length=512)] | None = None
    """A label selector as kubectl takes it: `team=mail,tier!=free`, `team in (a,b)`, `team`."""

    parent: Annotated[str, Field(max_length=253)] | None = None
    """Name of the job that submitted it."""

    cron_job: Annotated[str, Field(max_length=253)] | None = None
    """Name of the cron job that created it."""

    reason: Annotated[str, Field(max_length=64)] | None = None
    """Its reason."""

    older_than_seconds: Annotated[int, Field(ge=0, le=315_360_000)] | None = None
    """Created at least this many seconds ago."""

    newer_than_seconds: Annotated[int, Field(ge=0, le=315_360_000)] | None = None
    """Created at most this many seconds ago."""

    text: Annotated[str, Field(max_length=256)] | None = None
    """Occurs, in any case, in its name, type, message or error."""


class BulkAsk(RequestModel):
    """A redrive or dismissal of all dead letters that match."""

    selection: Selection = Field(default_factory=Selection)
    """Which; only dead letters are touched, whatever the filters say."""

    limit: Annotated[int, Field(ge=1, le=MAX_BULK_JOBS)] = 100
    """Maximum number, oldest first."""

    dry_run: bool = False
    """Only say which they would be."""


class BulkFailure(ResponseModel):
    """One that could not be done."""

    id: str
    """Its name."""

    detail: str
    """Why."""


class BulkReport(ResponseModel):
    """What became of a bulk action."""

    matched: int
    """Dead letters that match."""

    done: list[str]
    """Names of those acted on (in a dry run: that would be)."""

    failed: list[BulkFailure] = Field(default_factory=list)
    """Those that could not be done."""

    dry_run: bool = False
    """Nothing was changed."""


ListPosition = tuple[str, str]
"""Creation time and UID: where a job stands in a list; the greatest comes first."""


class BadCursorError(ValueError):
    """The cursor is not one that a page has given out."""


def matches_selection(
    job: JobSummary, obj: JsonObject, selection: Selection, now: datetime
) -> bool:
    """Return whether the job matches, its labels apart; `obj` is the AsyncJob it was read from."""
    wanted: tuple[tuple[object, object], ...] = (
        (selection.type, job.type),
        (selection.queue, job.queue),
        (selection.reason, job.reason),
        (selection.parent, _parent_name(obj)),
    )
    return (
        (selection.phase is None or job.phase in selection.phase)
        and all(value is None or value == found for value, found in wanted)
        and _matches_age(job, selection, now)
        and _contains_text(job, selection.text)
    )


def position_of(job: JobSummary) -> ListPosition:
    """Return where the job stands."""
    return job.created_at, job.uid


def encode_cursor(position: ListPosition) -> str:
    """Return the cursor of what comes after that place."""
    return base64.urlsafe_b64encode(dumps(position)).decode().rstrip("=")


def decode_cursor(cursor: str) -> ListPosition:
    """Return the place; raises BadCursorError."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        place = cast("list[Json]", loads(base64.urlsafe_b64decode(padded)))
        created, uid = map(str, place)
    except (binascii.Error, ValueError, TypeError) as error:
        raise BadCursorError(
            "invalid cursor: use the one that the page before has given, unchanged"
        ) from error
    return created, uid


def selected_phases(selection: Selection) -> frozenset[Phase]:
    """Return the phases that are meant."""
    return frozenset(Phase if selection.phase is None else selection.phase)


def _parent_name(obj: JsonObject) -> str:
    return text(child(child(obj, "metadata"), "annotations"), PARENT_NAME_ANNOTATION)


def _matches_age(job: JobSummary, selection: Selection, now: datetime) -> bool:
    older, newer = selection.older_than_seconds, selection.newer_than_seconds
    if older is None and newer is None:
        return True
    created = try_parse_timestamp(job.created_at)
    if created is None:
        return False
    age = now - created
    return (older is None or age >= timedelta(seconds=older)) and (
        newer is None or age <= timedelta(seconds=newer)
    )


def _contains_text(job: JobSummary, text_filter: str | None) -> bool:
    if not text_filter:
        return True
    error = f"{job.error.type} {job.error.message}" if job.error else ""
    searched = "\n".join((job.id, job.type, job.message or "", error))
    return text_filter.casefold() in searched.casefold()
