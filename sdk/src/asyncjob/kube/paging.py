"""How many objects to ask for in the next page of a list, so that pages stay small in bytes.

The API server bounds a page by its number of objects, and one object may be a thousand times as
large as another. So a list begins with few, grows while its pages stay small, and asks again for
fewer where an answer becomes too large or comes too late. Pure: who sends says what came of it.
"""

from http import HTTPStatus
from typing import Final

from asyncjob.errors import ApiError
from asyncjob.json_types import JsonObject, child, text

FIRST: Final = 20
"""Objects in the first page, of which nothing is known."""

MOST: Final = 500
"""Objects in any page: what kubectl asks for as well."""

GOAL_BYTES: Final = 2**20
"""Size that pages are to have. Jobs without much in them take 2 KiB: 500 of them are one page."""

MOST_BYTES: Final = 2**21
"""Size at which an answer is no longer read, but asked for again in smaller parts.

Parsed, 2 MiB of small rows hold the event loop for up to 50 ms and take 26 MiB (measured). A single
object is read whatever its size: the store takes none above 1.5 MiB.
"""

SECONDS: Final = 30.0
"""How long one page may take. It may be some megabytes, and the API server may be at its limit."""

_GROWTH: Final = 8
"""By how much pages grow at once: few small objects say little about the next."""

_TRIES: Final = 3
"""Pages in a row that may come too late; then it is not their size."""


class PageTooLargeError(ApiError):
    """An answer was larger than whoever asked for it can take; it was not read to its end."""


class Paging:
    """Where one list stands: the size of its next page and the token that it goes on from."""

    def __init__(self) -> None:
        self._objects = FIRST
        self._token = ""
        self._late = 0

    @property
    def begun(self) -> bool:
        """Whether some of the list has come, and more is to come."""
        return bool(self._token)

    @property
    def params(self) -> dict[str, str]:
        """Return what of the next request's parameters says which page it is."""
        more = {"continue": self._token} if self._token else {}
        return {"limit": str(self._objects), **more}

    @property
    def most_bytes(self) -> int | None:
        """Return the size that the next page may have; a single object may have any."""
        return MOST_BYTES if self._objects > 1 else None

    def took(self, page: JsonObject, count: int, size: int) -> None:
        """Note a page of so many objects and bytes that has come."""
        self._late = 0
        self._token = text(child(page, "metadata"), "continue")
        if count:
            fitting = count * GOAL_BYTES // max(1, size)
            self._objects = max(1, min(fitting, self._objects * _GROWTH, MOST))

    def ask_for_less(self, error: ApiError) -> bool:
        """Return whether the same page is to be asked for again, in a smaller part of it."""
        if isinstance(error, PageTooLargeError):
            self._objects = max(1, min(self._objects * GOAL_BYTES // MOST_BYTES, self._objects - 1))
            return True
        if not _is_late(error):
            return False
        self._late += 1
        self._objects = max(1, self._objects // 2)
        return self._late < _TRIES

    def begin_anew(self) -> None:
        """Start over: the API server has forgotten the moment that the list is of."""
        self._token = ""


def _is_late(error: ApiError) -> bool:
    """Return whether no answer came in time: to us, or to the API server from its store."""
    return isinstance(error.__cause__, TimeoutError) or error.status == HTTPStatus.GATEWAY_TIMEOUT
