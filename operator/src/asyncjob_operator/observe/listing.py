"""Lists of jobs: whole at the start, compared with what is known ever after.

A watch can lose a deletion, and then nothing else would ever tell. The comparison reads metadata
only, in pages of one consistent list; every difference is settled by a live read of that job.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import orjson

from asyncjob.errors import NotFoundError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.names import JOBS, collection, job_path
from asyncjob_operator.observe.observer import Observer
from asyncjob_operator.observe.store import is_newer

AS_METADATA: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PAGE: Final = 500


@dataclass(slots=True)
class Repairs:
    """How many jobs the watch had missed, by what had happened to them."""

    added: int = 0
    changed: int = 0
    deleted: int = 0

    @property
    def by_kind(self) -> dict[str, int]:
        """Return the counts by name."""
        return {"added": self.added, "changed": self.changed, "deleted": self.deleted}

    @property
    def total(self) -> int:
        """Return all of them."""
        return self.added + self.changed + self.deleted


async def load(session: KubeSession, namespace: str | None, observer: Observer) -> int:
    """Take all jobs there are and return how many."""
    count = 0
    async for obj in session.list(collection(namespace, JOBS), {"limit": str(PAGE)}):
        observer.saw(obj, live=False)
        count += 1
    return count


async def compare(session: KubeSession, namespace: str | None, observer: Observer) -> Repairs:
    """Repair what is known of jobs; raises what a request raises, ExpiredError included."""
    repairs = Repairs()
    listed: set[str] = set()
    async for meta in _metadata(session, namespace):
        uid, version = text(meta, "uid"), text(meta, "resourceVersion")
        listed.add(uid)
        known = observer.address(uid)
        if known is None or is_newer(version, known.version):
            found = await _reread(session, text(meta, "namespace"), text(meta, "name"), observer)
            repairs.added += bool(found and known is None)
            repairs.changed += bool(found and known)
    for uid, known in observer.store.addresses():
        if uid not in listed and namespace in {None, known.namespace}:
            found = await _reread(session, known.namespace, known.name, observer)
            if found != uid:
                observer.lost(uid)
                repairs.deleted += 1
    return repairs


async def _metadata(session: KubeSession, namespace: str | None) -> AsyncIterator[JsonObject]:
    params = {"limit": str(PAGE)}
    while True:
        answer = await session.stream(collection(namespace, JOBS), params, AS_METADATA)
        async with answer:
            page = as_object(orjson.loads(await answer.read()))
        for item in items(page, "items"):
            yield child(as_object(item), "metadata")
        token = text(child(page, "metadata"), "continue")
        if not token:
            return
        params["continue"] = token


async def _reread(
    session: KubeSession, namespace: str, name: str, observer: Observer
) -> str | None:
    """Take the job of this name as it is now; return its UID, or None if there is none."""
    try:
        obj = await session.get(job_path(namespace, name))
    except NotFoundError:
        return None
    observer.saw(obj, live=False)
    return text(child(obj, "metadata"), "uid")
