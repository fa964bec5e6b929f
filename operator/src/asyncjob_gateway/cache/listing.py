"""Lists of jobs and arrays from the cache.

Label selectors and other filters compiled into one test per job, and pages cut by a cursor. A page
begins after the position that its cursor names, so any replica can continue, and no job that stays
as it is is skipped or repeated.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from asyncjob.lifecycle.derived_jobs import cron_label_value
from asyncjob.rest.arrays import (
    ArrayInfo,
    ArrayPage,
    ArraySelection,
    array_position,
    matches_array,
)
from asyncjob.rest.jobs import Page
from asyncjob.rest.listing import (
    BadCursorError,
    ListPosition,
    Selection,
    decode_cursor,
    encode_cursor,
)
from asyncjob.rest.problem import FieldProblem
from asyncjob_gateway import problem_types
from asyncjob_gateway.cache.entries import CachedJob
from asyncjob_gateway.cache.jobs import JobCache
from asyncjob_gateway.clock import now
from asyncjob_gateway.errors import RefusedError

LabelMap = Mapping[str, str]
LabelTest = Callable[[LabelMap], bool]

_KEY: Final = r"(?P<key>[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?)"
_VALUE: Final = r"[A-Za-z0-9]?[A-Za-z0-9._-]*"
_REQUIREMENT_SEPARATOR: Final = re.compile(r",(?![^()]*\))")
_REQUIREMENTS: Final = (
    ("equal", re.compile(rf"{_KEY}\s*==?\s*(?P<value>{_VALUE})")),
    ("differs", re.compile(rf"{_KEY}\s*!=\s*(?P<value>{_VALUE})")),
    ("in", re.compile(rf"{_KEY}\s+in\s*\((?P<value>[^()]*)\)")),
    ("notin", re.compile(rf"{_KEY}\s+notin\s*\((?P<value>[^()]*)\)")),
    ("absent", re.compile(rf"!\s*{_KEY}")),
    ("present", re.compile(_KEY)),
)


def parse_label_selector(text: str, field: str) -> LabelTest:
    """Return the test; raises RefusedError, naming the field, where it is no selector."""
    tests = [_parse_requirement(part.strip(), field) for part in _REQUIREMENT_SEPARATOR.split(text)]
    return lambda labels: all(test(labels) for test in tests)


def _parse_requirement(part: str, field: str) -> LabelTest:
    for name, pattern in _REQUIREMENTS:
        found = pattern.fullmatch(part)
        if found:
            return _label_test(name, found["key"], found.groupdict().get("value") or "")
    detail = f"{part!r} is not a label selector, such as team=mail, tier in (a,b) or !old"
    raise RefusedError(
        problem_types.INVALID, detail, errors=[FieldProblem(field=field, detail=detail)]
    )


def _label_test(name: str, key: str, value: str) -> LabelTest:
    values = frozenset(item.strip() for item in value.split(","))
    match name:
        case "equal" | "in":
            return lambda labels: labels.get(key) in values
        case "differs" | "notin":
            return lambda labels: labels.get(key) not in values
        case "absent":
            return lambda labels: key not in labels
        case _:
            return lambda labels: key in labels


JobFilter = Callable[[CachedJob], bool]


def compile_selection(selection: Selection, now: datetime) -> JobFilter | None:
    """Return what tells whether a job is meant, None where all are."""
    tests = [*_exact_filters(selection), *_age_filters(selection, now)]
    if selection.label:
        labels = parse_label_selector(selection.label, "query.label")
        tests.append(lambda entry: labels(entry.summary.labels))
    if selection.text:
        wanted = selection.text.casefold()
        tests.append(lambda entry: wanted in entry.search_text)
    return _all_of(tests) if tests else None


def _exact_filters(selection: Selection) -> Iterator[JobFilter]:
    if selection.phase:
        phases = frozenset(selection.phase)
        yield lambda entry: entry.summary.phase in phases
    if selection.type:
        yield lambda entry: entry.summary.type == selection.type
    if selection.queue:
        yield lambda entry: entry.summary.queue == selection.queue
    if selection.reason:
        yield lambda entry: entry.summary.reason == selection.reason
    if selection.parent:
        yield lambda entry: entry.parent == selection.parent
    if selection.cron_job:
        label = cron_label_value(selection.cron_job)
        yield lambda entry: entry.cron_job == label


def _age_filters(selection: Selection, now: datetime) -> Iterator[JobFilter]:
    if selection.older_than_seconds is not None:
        latest = _creation_text(now - timedelta(seconds=selection.older_than_seconds))
        yield lambda entry: entry.sort_key[0] <= latest
    if selection.newer_than_seconds is not None:
        earliest = _creation_text(now - timedelta(seconds=selection.newer_than_seconds))
        yield lambda entry: entry.sort_key[0] >= earliest


def _creation_text(time: datetime) -> str:
    """Return the time as the API server writes creation times, so that they compare as text."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _all_of(tests: list[JobFilter]) -> JobFilter:
    return tests[0] if len(tests) == 1 else lambda entry: all(test(entry) for test in tests)


def read_cursor(cursor: str) -> ListPosition:
    """Return the place; raises RefusedError where it is none of ours."""
    try:
        return decode_cursor(cursor)
    except BadCursorError as error:
        detail = "is not a cursor: pass `next` of the previous page unchanged"
        problem = FieldProblem(field="query.cursor", detail=detail)
        raise RefusedError(
            problem_types.INVALID, f"query.cursor {detail}", errors=[problem]
        ) from error


def list_page(cache: JobCache, selection: Selection, cursor: str | None, limit: int) -> Page:
    """Return the jobs that match, newest first, after the cursor; raises RefusedError on a bad one.

    The total is counted for the first page only.
    """
    after = read_cursor(cursor) if cursor else None
    test = compile_selection(selection, now())
    found, more = _take_matching(cache, test, after, limit)
    total = _count_matching(cache, test) if after is None else None
    return Page(
        items=[entry.summary for entry in found],
        next=encode_cursor(found[-1].sort_key) if more else None,
        total=total,
    )


def _take_matching(
    cache: JobCache, test: JobFilter | None, after: ListPosition | None, limit: int
) -> tuple[list[CachedJob], bool]:
    found: list[CachedJob] = []
    for entry in cache.newest_first(after):
        if test is None or test(entry):
            if len(found) == limit:
                return found, True
            found.append(entry)
    return found, False


def _count_matching(cache: JobCache, test: JobFilter | None) -> int:
    if test is None:
        return len(cache)
    return sum(map(test, cache.newest_first()))


def array_page(
    arrays: Iterable[ArrayInfo], selection: ArraySelection, cursor: str | None, limit: int
) -> ArrayPage:
    """Return the arrays that match, newest first, after the cursor, as `list_page` does of jobs."""
    after = read_cursor(cursor) if cursor else None
    labels = parse_label_selector(selection.label, "query.label") if selection.label else None
    matching = sorted(
        (
            array
            for array in arrays
            if matches_array(array, selection) and (labels is None or labels(array.labels))
        ),
        key=array_position,
        reverse=True,
    )
    rest = [array for array in matching if after is None or array_position(array) < after]
    found = rest[:limit]
    return ArrayPage(
        items=found,
        next=encode_cursor(array_position(found[-1])) if len(rest) > limit else None,
        total=len(matching) if after is None else None,
    )
