"""The children that earlier attempts of a job have submitted, as one list finds them.

A handler that is run again submits its children again, and waits for them again. Once one of them
is there already, a list says which others are: without a request for each, nor another for the
result of each that has succeeded, which nothing changes any more.

What is found is given once, and soon after the list: a handler that submits the same again, because
it was deleted meanwhile, asks the API server. So does one whose child the list does not have.
"""

import asyncio
import math
from dataclasses import dataclass
from typing import Final

import orjson
import structlog

from asyncjob.app.child_jobs import ChildRef, ChildView, read_child
from asyncjob.errors import ApiError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.names import CONTENT_ANNOTATION, JOBS, PARENT_LABEL, collection_path
from asyncjob_worker.clock import boottime

log = structlog.get_logger()

MAX_RESULT_BYTES_KEPT: Final = 2 * 1024 * 1024
"""Most bytes of results that are kept until the handler waits for them; others are read again."""

LIST_SECONDS: Final = 5.0
"""How long a submission waits for the list; after that each child is asked for by itself."""

KNOWN_SECONDS: Final = 60.0
"""How long what the list has found counts: a child may be deleted, and is submitted again then."""


def _metadata_of_child(found: JsonObject) -> JsonObject:
    """Return what is kept of a child's metadata: whose it is, and a digest of what it does."""
    meta = child(found, "metadata")
    labels, annotations = child(meta, "labels"), child(meta, "annotations")
    return {
        "uid": text(meta, "uid"),
        "labels": {PARENT_LABEL: text(labels, PARENT_LABEL)},
        "annotations": {CONTENT_ANNOTATION: text(annotations, CONTENT_ANNOTATION)},
    }


@dataclass(slots=True)
class _Found:
    """What a list has found, by name and by child."""

    metadata: dict[str, JsonObject]
    succeeded: dict[ChildRef, ChildView]


class EarlierChildren:
    """The children of one held job from before its attempt; listed once one of them is met.

    `has_earlier` says whether there was an attempt before: without one nothing is listed.
    """

    def __init__(
        self, session: KubeSession, namespace: str, parent_uid: str, *, has_earlier: bool
    ) -> None:
        self._session = session
        self._namespace = namespace
        self._parent_uid = parent_uid
        self._has_earlier = has_earlier
        self._found = _Found({}, {})
        self._listing: asyncio.Task[None] | None = None
        self._forgotten_at = 0.0

    async def list(self) -> None:
        """Look for the others, as one has been met; returns after `LIST_SECONDS` in any case."""
        if not self._has_earlier:
            return
        if self._listing is None:
            self._forgotten_at = boottime() + KNOWN_SECONDS
            self._listing = asyncio.ensure_future(self._list())
        await asyncio.wait({self._listing}, timeout=LIST_SECONDS)

    def take(self, name: str) -> JsonObject | None:
        """Return the child of this name with nothing but its metadata; None if none is known."""
        metadata = self._found.metadata.pop(name, None)
        if metadata is None or boottime() >= self._forgotten_at:
            return None
        return {"metadata": metadata}

    def take_succeeded(self, ref: ChildRef) -> ChildView | None:
        """Return the end of a child that has succeeded; None if that is not known."""
        return self._found.succeeded.pop(ref, None)

    def stop(self) -> None:
        """Ask for nothing more."""
        if self._listing is not None:
            self._listing.cancel()

    async def _list(self) -> None:
        path = collection_path(self._namespace, JOBS)
        params = {"labelSelector": f"{PARENT_LABEL}={self._parent_uid}"}
        kept = 0.0
        try:
            async for found in self._session.list(path, params):
                kept += self._keep(found, MAX_RESULT_BYTES_KEPT - kept)
        except ApiError as error:  # one by one, then, and each is tried until it is answered
            log.warning("children not listed", parent=self._parent_uid, error=str(error))

    def _keep(self, found: JsonObject, room: float) -> float:
        """Keep what is needed of a child; return the bytes of its result, if that is kept."""
        metadata = _metadata_of_child(found)
        self._found.metadata[text(child(found, "metadata"), "name")] = metadata
        try:
            view = read_child(found)
        except ValueError:  # a phase of a newer version: the wait for it says so
            return 0
        size = _size_of(view)
        if not view.succeeded or size > room:
            return 0
        self._found.succeeded[ChildRef(view.name, view.uid)] = view
        return size


def _size_of(view: ChildView) -> float:
    try:
        return len(orjson.dumps([view.result, view.result_ref]))
    except TypeError:  # deeper than any worker stores
        return math.inf
