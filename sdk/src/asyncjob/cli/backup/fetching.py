"""Reads all objects of a kind, page by page, as they were at one moment."""

from dataclasses import dataclass
from typing import Final

from asyncjob.client.steps import Call, Emissions, Emit, patiently
from asyncjob.errors import ExpiredError
from asyncjob.json_types import JsonObject, as_object, child, items, text

PAGE: Final = "100"
"""So few that a page of large payloads arrives in time."""

TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Page:
    """Objects; `anew`: all that was handed out before is void."""

    objects: tuple[JsonObject, ...] = ()
    anew: bool = False


def pages(path: str, patience: float) -> Emissions[Page]:
    """Hand out a collection, begun anew where the API server has forgotten that moment.

    Raises ExpiredError where that happens again and again.
    """
    tries_left, token = TRIES, ""
    while True:
        more = (("continue", token),) if token else ()
        try:
            answer = yield from patiently(Call("GET", path, (("limit", PAGE), *more)), patience)
        except ExpiredError:
            tries_left -= 1
            if not (token and tries_left):
                raise
            token = ""
            yield Emit(Page(anew=True))
            continue
        found = answer.object
        yield Emit(Page(tuple(as_object(one) for one in items(found, "items"))))
        token = text(child(found, "metadata"), "continue")
        if not token:
            return
