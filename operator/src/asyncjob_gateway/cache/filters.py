"""A selection as one test of an entry. Pure; the time is an argument."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from asyncjob.lifecycle.derived_names import label_value
from asyncjob.rest.selection import Selection
from asyncjob_gateway.cache.entry import Entry
from asyncjob_gateway.cache.labels import selector

Test = Callable[[Entry], bool]


def compiled(selection: Selection, now: datetime) -> Test | None:
    """Return what tells whether a job is meant, None where all are."""
    tests = [*_exact(selection), *_ages(selection, now)]
    if selection.label:
        labels = selector(selection.label, "query.label")
        tests.append(lambda entry: labels(entry.summary.labels))
    if selection.text:
        wanted = selection.text.casefold()
        tests.append(lambda entry: wanted in entry.text)
    return _all(tests) if tests else None


def _exact(asked: Selection) -> Iterator[Test]:
    if asked.phase:
        phases = frozenset(asked.phase)
        yield lambda entry: entry.summary.phase in phases
    if asked.type:
        yield lambda entry: entry.summary.type == asked.type
    if asked.queue:
        yield lambda entry: entry.summary.queue == asked.queue
    if asked.reason:
        yield lambda entry: entry.summary.reason == asked.reason
    if asked.parent:
        yield lambda entry: entry.parent == asked.parent
    if asked.cron_job:
        label = label_value(asked.cron_job)
        yield lambda entry: entry.cron_job == label


def _ages(asked: Selection, now: datetime) -> Iterator[Test]:
    if asked.older_than_seconds is not None:
        latest = _text(now - timedelta(seconds=asked.older_than_seconds))
        yield lambda entry: entry.place[0] <= latest
    if asked.newer_than_seconds is not None:
        earliest = _text(now - timedelta(seconds=asked.newer_than_seconds))
        yield lambda entry: entry.place[0] >= earliest


def _text(time: datetime) -> str:
    """Return the time as the API server writes creation times, so that they compare as text."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _all(tests: list[Test]) -> Test:
    return tests[0] if len(tests) == 1 else lambda entry: all(test(entry) for test in tests)
