"""Which jobs a selection means, in what order, and where in it a page begins. Pure."""

import base64
import binascii
from datetime import datetime, timedelta
from typing import Final

import orjson

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.timestamps import try_parse_timestamp
from asyncjob.names import PARENT_NAME_ANNOTATION
from asyncjob.rest.job import JobSummary
from asyncjob.rest.selection import Selection

ListPosition = tuple[str, str]
"""Creation time and UID: where a job stands in a list; the greatest comes first."""

_PARTS: Final = 2


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
        and all(asked is None or asked == found for asked, found in wanted)
        and _matches_age(job, selection, now)
        and _contains_text(job, selection.text)
    )


def position_of(job: JobSummary) -> ListPosition:
    """Return where the job stands."""
    return job.created_at, job.uid


def encode_cursor(position: ListPosition) -> str:
    """Return the cursor of what comes after that place."""
    return base64.urlsafe_b64encode(orjson.dumps(position)).decode().rstrip("=")


def decode_cursor(cursor: str) -> ListPosition:
    """Return the place; raises BadCursorError."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        created, uid = map(str, orjson.loads(base64.urlsafe_b64decode(padded)))
    except (binascii.Error, ValueError, TypeError) as error:
        raise BadCursorError("the cursor is not one that a page has given out") from error
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
    said = "\n".join((job.id, job.type, job.message or "", error))
    return text_filter.casefold() in said.casefold()
