"""Lists of jobs: whole at the start, compared with what is known ever after.

A watch can lose a deletion, and then nothing else would ever tell. The comparison reads metadata
only, in pages of one consistent list; every difference is settled by a live read of that job.
"""

from collections.abc import Callable
from dataclasses import dataclass

from asyncjob.errors import NotFoundError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.kube.session import AS_METADATA
from asyncjob.kube.turns import Turns
from asyncjob.names import JOBS, collection, job_path
from asyncjob_operator.observe.observer import Observer
from asyncjob_operator.observe.store import is_newer
from asyncjob_operator.telemetry.containment import Kind, subject


@dataclass(slots=True)
class Loaded:
    """How many jobs a list has shown, and the version from which a watch goes on."""

    count: int = 0
    version: str = ""


@dataclass(slots=True)
class Repairs:
    """How many jobs the watch had missed, by what had happened to them.

    `version` is the list's, from which a watch goes on.
    """

    added: int = 0
    changed: int = 0
    deleted: int = 0
    version: str = ""

    @property
    def by_kind(self) -> dict[str, int]:
        """Return the counts by name."""
        return {"added": self.added, "changed": self.changed, "deleted": self.deleted}

    @property
    def total(self) -> int:
        """Return all of them."""
        return self.added + self.changed + self.deleted


async def load(
    session: KubeSession, namespace: str | None, observer: Observer, went_on: Callable[[], None]
) -> Loaded:
    """Take all jobs there are; `went_on` is called with each page of them."""
    loaded, turns = Loaded(), Turns()
    async for page in session.pages(collection(namespace, JOBS)):
        for obj in items(page, "items"):
            observer.saw(as_object(obj), live=False)
            loaded.count += 1
            await turns.give()
        went_on()
        loaded.version = text(child(page, "metadata"), "resourceVersion")
    return loaded


async def compare(session: KubeSession, namespace: str | None, observer: Observer) -> Repairs:
    """Repair what is known of jobs; raises what a request raises, ExpiredError included."""
    repairs, turns = Repairs(), Turns()
    listed: set[str] = set()
    aside = observer.containment.names(Kind.JOB, namespace)
    async for page in session.pages(collection(namespace, JOBS), accept=AS_METADATA):
        repairs.version = text(child(page, "metadata"), "resourceVersion")
        for item in items(page, "items"):
            obj = as_object(item)
            meta = child(obj, "metadata")
            listed.add(text(meta, "uid"))
            aside.discard((text(meta, "namespace"), text(meta, "name")))
            await _repair_listed(session, obj, observer, repairs)
            await turns.give()
    for gone in aside:
        observer.containment.forget(Kind.JOB, *gone)
    for uid, known in observer.store.addresses():
        await turns.give()
        if uid not in listed and namespace in {None, known.namespace}:
            found = await _reread(session, known.namespace, known.name, observer)
            if found != uid:
                observer.lost(uid)
                repairs.deleted += 1
    return repairs


async def _repair_listed(
    session: KubeSession, obj: JsonObject, observer: Observer, repairs: Repairs
) -> None:
    """Read a listed job again that is not known, or only as it was before.

    What is set aside as it is waits for its time, and is repaired only once it is understood.
    """
    meta = child(obj, "metadata")
    uid = text(meta, "uid")
    known = observer.address(uid)
    if known and not is_newer(text(meta, "resourceVersion"), known.version):
        return
    if observer.containment.rests(subject(Kind.JOB, obj)):
        return
    await _reread(session, text(meta, "namespace"), text(meta, "name"), observer)
    now_known = observer.address(uid)
    if now_known and now_known != known:
        repairs.added += known is None
        repairs.changed += known is not None


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
