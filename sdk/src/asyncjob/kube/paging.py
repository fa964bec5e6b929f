"""How many objects to ask for in the next page of a list, so that pages stay small in bytes.

The API server bounds a page by its number of objects, and one object may be a thousand times as
large as another. So a list begins with few, grows while its pages stay small, and asks again for
fewer where an answer becomes too large or comes too late. Pure: who sends says what came of it.
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from asyncjob.errors import ApiError
from asyncjob.json_types import JsonObject, child, text

FIRST_PAGE_OBJECTS: Final = 20
"""Objects in the first page, of which nothing is known."""

MAX_PAGE_OBJECTS: Final = 500
"""Objects in any page: what kubectl asks for as well."""

TARGET_PAGE_BYTES: Final = 3 * 2**18
"""Size that pages are to have. Jobs without much in them take 2 KiB: some 400 are one page."""

MAX_PAGE_BYTES: Final = 3 * 2**19
"""Size at which an answer is no longer read, but asked for again in smaller parts.

Parsed, 1.5 MiB of small rows hold the event loop for up to 40 ms, twice as long on a busy machine,
and take 20 MiB (measured). A single object is read whatever its size: the store takes none above
1.5 MiB.
"""

PAGE_TIMEOUT_SECONDS: Final = 30.0
"""How long one page may take. It may be some megabytes, and the API server may be at its limit."""

_VERSION_PARAMS: Final = frozenset({"resourceVersion", "resourceVersionMatch"})

_MAX_GROWTH: Final = 8
"""By how much pages grow at once: few small objects say little about the next."""

_MAX_LATE_PAGES: Final = 3
"""Pages in a row that may come too late; then it is not their size."""


class PageTooLargeError(ApiError):
    """An answer was larger than the caller can take; it was not read to its end."""


class ListPager:
    """Where one list stands: the size of its next page and the token that it goes on from."""

    def __init__(self) -> None:
        self._limit = FIRST_PAGE_OBJECTS
        self._continue_token = ""
        self._late_pages = 0

    @property
    def has_more(self) -> bool:
        """Whether some of the list has come, and more is to come."""
        return bool(self._continue_token)

    @property
    def params(self) -> dict[str, str]:
        """Return what of the next request's parameters says which page it is."""
        more = {"continue": self._continue_token} if self._continue_token else {}
        return {"limit": str(self._limit), **more}

    def request_params(self, selection: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Return the parameters of the next request for a page of what `selection` selects.

        A continue token says which version the list is of; the API server refuses one besides.
        """
        chosen = dict(selection)
        if self._continue_token:
            chosen = {name: chosen[name] for name in chosen if name not in _VERSION_PARAMS}
        return {**self.params, **chosen}

    @property
    def max_bytes(self) -> int | None:
        """Return the size that the next page may have; a single object may have any."""
        return MAX_PAGE_BYTES if self._limit > 1 else None

    def record_page(self, page: JsonObject, count: int, size: int) -> None:
        """Record the size of a page that has come."""
        self._late_pages = 0
        self._continue_token = text(child(page, "metadata"), "continue")
        if count:
            fitting = count * TARGET_PAGE_BYTES // max(1, size)
            self._limit = max(1, min(fitting, self._limit * _MAX_GROWTH, MAX_PAGE_OBJECTS))

    def shrink_after(self, error: ApiError) -> bool:
        """Return whether the same page is to be asked for again, in a smaller part of it."""
        if isinstance(error, PageTooLargeError):
            self._limit = max(
                1, min(self._limit * TARGET_PAGE_BYTES // MAX_PAGE_BYTES, self._limit - 1)
            )
            return True
        if not _is_timeout(error):
            return False
        self._late_pages += 1
        self._limit = max(1, self._limit // 2)
        return self._late_pages < _MAX_LATE_PAGES

    def restart(self) -> None:
        """Start over: the API server has forgotten the moment that the list is of."""
        self._continue_token = ""


def _is_timeout(error: ApiError) -> bool:
    """Return whether no answer came in time: to us, or to the API server from its store."""
    return isinstance(error.__cause__, TimeoutError) or error.status == HTTPStatus.GATEWAY_TIMEOUT
