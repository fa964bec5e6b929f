"""The comparison with the cluster repairs whatever a watch has lost."""

from collections.abc import AsyncIterator
from typing import Any, cast

from asyncjob.kube import KubeSession
from asyncjob.kube.session import METADATA_LIST_TYPE
from asyncjob.names import job_path
from asyncjob_operator.controllers.job_informer import JobResync, load_jobs
from asyncjob_operator.kube.clock import current_time
from support.in_memory.fake_session import FakeSession, Object
from support.objects.snapshots import raw
from support.parts.evaluation import Evaluation, evaluation
from support.parts.vitals import quarantine


class Server(FakeSession):
    """Lists metadata in pages of two."""

    async def pages(
        self, path: str, params: Any = None, *, accept: str = ""
    ) -> AsyncIterator[Object]:
        if accept != METADATA_LIST_TYPE:
            async for page in super().pages(path, params):
                yield page
            return
        found = [{"metadata": o["metadata"]} for k, o in self.objects.items() if k.startswith(path)]
        for start in range(0, max(1, len(found)), 2):
            yield {"metadata": {}, "items": found[start : start + 2]}


async def prepared(*names: str) -> tuple[Server, JobResync, Evaluation]:
    server = Server()
    for name in names:
        server.put(job_path("ns", name), cast("Any", raw(name)))
    session, marks = cast("KubeSession", server), quarantine()
    made = evaluation(current_time, quarantine=marks)
    loaded = await load_jobs(session, "ns", made.evaluator, lambda: None)
    assert loaded.count == len(names)
    return server, JobResync(session, made.evaluator, made.caches.store, marks), made


async def test_where_nothing_was_lost_nothing_is_read_again() -> None:
    server, resync, _ = await prepared("a", "b", "c")
    server.requests.clear()
    assert (await resync.run("ns")).total == 0
    assert server.requests == []


async def test_a_lost_deletion_a_lost_change_and_a_lost_creation_are_repaired() -> None:
    server, resync, made = await prepared("gone", "changed", "same")
    del server.objects[job_path("ns", "gone")]
    server.put(job_path("ns", "changed"), cast("Any", raw("changed", spec={"cancel": True})))
    server.put(job_path("ns", "new"), cast("Any", raw("new")))
    repairs = await resync.run("ns")
    assert (repairs.added, repairs.changed, repairs.deleted) == (1, 1, 1)
    assert {uid for uid, _ in made.caches.store.addresses()} == {
        "uid-changed",
        "uid-same",
        "uid-new",
    }
    changed = made.caches.store.get("uid-changed")
    assert changed
    assert changed.control.cancel


async def test_a_job_created_while_the_list_was_read_is_not_taken_for_deleted() -> None:
    server, resync, made = await prepared("a")
    late = server.put(job_path("ns", "late"), cast("Any", raw("late")))
    made.evaluator.on_update(late, just_changed=True)
    listed = server.objects.pop(job_path("ns", "late"))
    real_get = server.get

    async def get(path: str, params: Any = None) -> Any:
        server.objects[job_path("ns", "late")] = listed
        return await real_get(path, params)

    server.get = get  # type: ignore[method-assign]  # lists before it reads
    assert (await resync.run("ns")).total == 0
    assert "uid-late" in made.caches.store


async def test_a_job_of_the_same_name_made_again_replaces_the_one_deleted() -> None:
    server, resync, made = await prepared("a")
    renewed = cast("Any", raw("a"))
    renewed["metadata"]["uid"] = "second"
    server.put(job_path("ns", "a"), renewed)
    repairs = await resync.run("ns")
    assert (repairs.added, repairs.deleted) == (1, 1)
    assert {uid for uid, _ in made.caches.store.addresses()} == {"second"}


async def test_another_namespaces_jobs_are_not_taken_for_deleted() -> None:
    _, resync, made = await prepared("a")
    assert (await resync.run("other")).total == 0
    assert "uid-a" in made.caches.store
