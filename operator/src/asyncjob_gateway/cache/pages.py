"""One page of a list, cut from the cache."""

from asyncjob.rest.choosing import Place, to_cursor
from asyncjob.rest.job import Page
from asyncjob.rest.selection import Selection
from asyncjob_gateway.cache.clock import now
from asyncjob_gateway.cache.cursor import read_cursor
from asyncjob_gateway.cache.entry import Entry
from asyncjob_gateway.cache.filters import Test, compiled
from asyncjob_gateway.cache.jobs import JobCache


def page(cache: JobCache, selection: Selection, cursor: str | None, limit: int) -> Page:
    """Return the jobs that match, newest first, after the cursor; raises RefusedError on a bad one.

    The total is counted for the first page only.
    """
    after = read_cursor(cursor) if cursor else None
    test = compiled(selection, now())
    found, more = _take(cache, test, after, limit)
    total = _count(cache, test) if after is None else None
    return Page(
        items=[entry.summary for entry in found],
        next=to_cursor(found[-1].place) if more else None,
        total=total,
    )


def _take(
    cache: JobCache, test: Test | None, after: Place | None, limit: int
) -> tuple[list[Entry], bool]:
    found: list[Entry] = []
    for entry in cache.newest(after):
        if test is None or test(entry):
            if len(found) == limit:
                return found, True
            found.append(entry)
    return found, False


def _count(cache: JobCache, test: Test | None) -> int:
    if test is None:
        return len(cache)
    return sum(map(test, cache.newest()))
