"""A selection as one test of an entry. Pure; the time is an argument."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from asyncjob.lifecycle.derived_names import cron_label_value
from asyncjob.rest.selection import Selection
from asyncjob_gateway.cache.entry import CachedJob
from asyncjob_gateway.cache.labels import parse_label_selector

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
