"""Reads all objects of a kind, page by page, as they were at one moment."""

from dataclasses import dataclass
from typing import Final

from asyncjob.client.on_kubernetes.calls import next_page
from asyncjob.client.steps import Emissions, Emit
from asyncjob.errors import ExpiredError
from asyncjob.json_types import JsonObject, as_object, items
from asyncjob.kube.paging import ListPager

MAX_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """Objects; `anew`: all that was handed out before is void."""

    objects: tuple[JsonObject, ...] = ()
    restarted: bool = False


def read_pages(path: str, retry_seconds: float) -> Emissions[ObjectPage]:
    """Hand out a collection, begun anew where the API server has forgotten that moment.

    Raises ExpiredError where that happens again and again.
    """
    tries_left, paging = MAX_ATTEMPTS, ListPager()
    while True:
        try:
            found = yield from next_page(paging, path, (), retry_seconds)
        except ExpiredError:
            tries_left -= 1
            if not (paging.has_more and tries_left):
                raise
            paging.restart()
            yield Emit(ObjectPage(restarted=True))
            continue
        yield Emit(ObjectPage(tuple(as_object(one) for one in items(found, "items"))))
        if not paging.has_more:
            return
