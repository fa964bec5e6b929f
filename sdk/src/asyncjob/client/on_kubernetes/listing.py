"""Lists of jobs, newest first, which the API server does not have: it sorts by name.

So all jobs that match are read, in pages of bounded size, whatever the limit; of each only its
summary is kept. A gateway keeps them in sight and is quicker.
"""

import heapq
from collections.abc import Callable
from datetime import datetime

from asyncjob.client.errors import InvalidRequestError
from asyncjob.client.on_kubernetes.calls import Params, jobs_path, list_all
from asyncjob.client.steps import Steps
from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.derived_names import cron_label_value
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOB_LABEL, PARENT_LABEL
from asyncjob.rest.choosing import (
    BadCursorError,
    ListPosition,
    decode_cursor,
    encode_cursor,
    matches_selection,
    position_of,
    selected_phases,
)
from asyncjob.rest.job import JobSummary, Page
from asyncjob.rest.reading import summary_of
from asyncjob.rest.selection import Selection

WallClock = Callable[[], datetime]


def list_jobs(
    namespace: str | None, selection: Selection, now: datetime, patience: float
) -> Steps[list[JobSummary]]:
    """Return all jobs that match, newest first; namespace None: of all."""
    found = yield from list_all(
        jobs_path(namespace),
        selector_params(selection),
        patience,
        _summary_if_matching(selection, now),
    )
    return sorted(found, key=position_of, reverse=True)


def list_page(
    namespace: str,
    selection: Selection,
    now: datetime,
    patience: float,
    *,
    cursor: str | None,
    limit: int,
) -> Steps[Page]:
    """Return the jobs that match and come after the cursor; raises InvalidRequestError."""
    after = _decode_position(cursor)
    all_ = yield from list_all(
        jobs_path(namespace),
        selector_params(selection),
        patience,
        _summary_if_matching(selection, now),
    )
    rest = [job for job in all_ if after is None or position_of(job) < after]
    shown = heapq.nlargest(limit, rest, key=position_of)
    more = len(rest) > len(shown)
    return Page(
        items=shown, next=encode_cursor(position_of(shown[-1])) if more else None, total=len(all_)
    )


def selector_params(selection: Selection) -> Params:
    """Return what of a selection the API server itself can look at."""
    params = (
        ("fieldSelector", _field_selector(selection)),
        ("labelSelector", _label_selector(selection)),
    )
    return tuple((name, value) for name, value in params if value)


def _field_selector(selection: Selection) -> str:
    left_out = [] if selection.phase is None else sorted(set(Phase) - selected_phases(selection))
    wanted = [("spec.type", selection.type), ("spec.queue", selection.queue)]
    terms = [f"{field}={value}" for field, value in wanted if value is not None]
    return ",".join([*terms, *(f"status.phase!={phase.value}" for phase in left_out)])


def _label_selector(selection: Selection) -> str:
    terms = [selection.label] if selection.label else []
    if selection.cron_job is not None:
        terms.append(f"{CRON_JOB_LABEL}={cron_label_value(selection.cron_job)}")
    if selection.parent is not None:
        terms.append(PARENT_LABEL)
    return ",".join(terms)


def _summary_if_matching(
    selection: Selection, now: datetime
) -> Callable[[JsonObject], JobSummary | None]:
    def keep(obj: JsonObject) -> JobSummary | None:
        job = summary_of(obj)
        return job if matches_selection(job, obj, selection, now) else None

    return keep


def _decode_position(cursor: str | None) -> ListPosition | None:
    try:
        return None if cursor is None else decode_cursor(cursor)
    except BadCursorError as error:
        raise InvalidRequestError(f"cursor: {error}") from error
