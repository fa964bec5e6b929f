"""Reads all objects of a kind, page by page, as they were at one moment."""

from dataclasses import dataclass
from typing import Final

from asyncjob.client.on_kubernetes.calls import next_page
from asyncjob.client.steps import Emissions, Emit
from asyncjob.errors import ExpiredError
from asyncjob.json_types import JsonObject, as_object, items
from asyncjob.kube.paging import Paging

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
    tries_left, paging = TRIES, Paging()
    while True:
        try:
            found = yield from next_page(paging, path, (), patience)
        except ExpiredError:
            tries_left -= 1
            if not (paging.begun and tries_left):
                raise
            paging.begin_anew()
            yield Emit(Page(anew=True))
            continue
        yield Emit(Page(tuple(as_object(one) for one in items(found, "items"))))
        if not paging.begun:
            return
