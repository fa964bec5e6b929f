"""One page of a list, cut from the cache."""

from asyncjob.rest.choosing import ListPosition, encode_cursor
from asyncjob.rest.job import Page
from asyncjob.rest.selection import Selection
from asyncjob_gateway.cache.clock import now
from asyncjob_gateway.cache.cursor import read_cursor
from asyncjob_gateway.cache.entry import CachedJob
from asyncjob_gateway.cache.filters import JobFilter, compile_selection
from asyncjob_gateway.cache.jobs import JobCache


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
