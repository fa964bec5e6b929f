"""Lists of jobs: whole at the start, compared with what is known ever after.

A watch can lose a deletion, and then nothing else would ever tell. The comparison reads metadata
only, in pages of one consistent list; every difference is settled by a live read of that job.
"""

from collections.abc import Callable
from dataclasses import dataclass

from asyncjob.errors import ObjectNotFoundError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.kube.session import METADATA_LIST_TYPE
from asyncjob.kube.turns import TimeSlice
from asyncjob.names import JOBS, collection_path, job_path
from asyncjob_operator.observe.observer import JobController
from asyncjob_operator.observe.store import is_newer
from asyncjob_operator.telemetry.containment import ObjectKind, object_ref


@dataclass(slots=True)
class InitialList:
    """How many jobs a list has shown, and the version from which a watch goes on."""

    count: int = 0
    version: str = ""


@dataclass(slots=True)
class ResyncResult:
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


async def load_jobs(
    session: KubeSession,
    namespace: str | None,
    controller: JobController,
    on_page: Callable[[], None],
) -> InitialList:
    """Take all jobs there are; `on_page` is called with each page of them."""
    loaded, turns = InitialList(), TimeSlice()
    async for page in session.pages(collection_path(namespace, JOBS)):
        for obj in items(page, "items"):
            controller.on_update(as_object(obj), live=False)
            loaded.count += 1
            await turns.yield_if_due()
        on_page()
        loaded.version = text(child(page, "metadata"), "resourceVersion")
    return loaded


async def resync_jobs(
    session: KubeSession, namespace: str | None, controller: JobController
) -> ResyncResult:
    """Repair what is known of jobs; raises what a request raises, ExpiredError included."""
    repairs, turns = ResyncResult(), TimeSlice()
    listed: set[str] = set()
    aside = controller.containment.set_aside_names(ObjectKind.JOB, namespace)
    async for page in session.pages(collection_path(namespace, JOBS), accept=METADATA_LIST_TYPE):
        repairs.version = text(child(page, "metadata"), "resourceVersion")
        for item in items(page, "items"):
            obj = as_object(item)
            meta = child(obj, "metadata")
            listed.add(text(meta, "uid"))
            aside.discard((text(meta, "namespace"), text(meta, "name")))
            await _repair_listed(session, obj, controller, repairs)
            await turns.yield_if_due()
    for gone in aside:
        controller.containment.forget(ObjectKind.JOB, *gone)
    for uid, known in controller.store.addresses():
        await turns.yield_if_due()
        if uid not in listed and namespace in {None, known.namespace}:
            found = await _reread(session, known.namespace, known.name, controller)
            if found != uid:
                controller.on_delete(uid)
                repairs.deleted += 1
    return repairs


async def _repair_listed(
    session: KubeSession, obj: JsonObject, controller: JobController, result: ResyncResult
) -> None:
    """Read a listed job again that is not known, or only as it was before.

    What is set aside as it is waits for its time, and is repaired only once it is understood.
    """
    meta = child(obj, "metadata")
    uid = text(meta, "uid")
    known = controller.locate(uid)
    if known and not is_newer(text(meta, "resourceVersion"), known.version):
        return
    if controller.containment.is_set_aside(object_ref(ObjectKind.JOB, obj)):
        return
    await _reread(session, text(meta, "namespace"), text(meta, "name"), controller)
    now_known = controller.locate(uid)
    if now_known and now_known != known:
        result.added += known is None
        result.changed += known is not None


async def _reread(
    session: KubeSession, namespace: str, name: str, controller: JobController
) -> str | None:
    """Take the job of this name as it is now; return its UID, or None if there is none."""
    try:
        obj = await session.get(job_path(namespace, name))
    except ObjectNotFoundError:
        return None
    controller.on_update(obj, live=False)
    return text(child(obj, "metadata"), "uid")
