"""Schedules are taken one at a time, kept small, and forgotten once they are no more."""

import gc
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, cast

from asyncjob.errors import ExpiredError
from asyncjob.kube import KubeSession, WatchEvent
from asyncjob.kube.informer import list_into
from asyncjob.kube.session import METADATA_LIST_TYPE
from asyncjob.names import CRON_JOBS, collection_path, cron_job_path
from asyncjob_operator.cache.scheduled_jobs import ScheduledJobCache
from asyncjob_operator.controllers.cron_job_evaluator import (
    CronJobEvaluator,
    CronJobStore,
    resync_cron_jobs,
)
from asyncjob_operator.controllers.workqueue import DelayingQueue
from asyncjob_operator.kube.clock import current_time
from asyncjob_operator.telemetry.quarantine import Quarantine
from support.in_memory.fake_session import FakeSession
from support.objects.schedules import raw_cron
from support.parts import vitals

PATH = collection_path("ns", CRON_JOBS)


@dataclass
class Schedules:
    """An evaluator of cron jobs, and what lists them into it."""

    session: KubeSession
    evaluator: CronJobEvaluator
    quarantine: Quarantine

    async def resync(self, namespace: str) -> int:
        return await resync_cron_jobs(self.session, namespace, self.evaluator, self.quarantine)

    def store(self) -> CronJobStore:
        return CronJobStore(self.evaluator, "ns", self.quarantine)


def prepared(*names: str) -> tuple[FakeSession, Schedules]:
    server, quarantine = FakeSession(), vitals.quarantine()
    for name in names:
        server.put(f"{PATH}/{name}", raw_cron(name))
    evaluator = CronJobEvaluator(
        "me",
        ScheduledJobCache(),
        current_time,
        lambda _uid: None,
        delaying_queue=DelayingQueue(),
        quarantine=quarantine,
    )
    return server, Schedules(cast("KubeSession", server), evaluator, quarantine)


def known(schedules: Schedules) -> set[str]:
    return {name for _, name in schedules.evaluator.names_in(None)}


def reads(server: FakeSession) -> list[str]:
    """Return which objects were read, one at a time."""
    return [path for _, path, _ in server.requests if path != PATH]


async def test_a_schedule_deleted_while_nobody_watched_is_forgotten() -> None:
    server, schedules = prepared("kept", "gone")
    assert await schedules.resync("ns") == 2
    assert known(schedules) == {"kept", "gone"}
    del server.objects[f"{PATH}/gone"]
    assert await schedules.resync("ns") == 1
    assert known(schedules) == {"kept"}


async def test_what_is_known_as_it_is_is_not_read_again() -> None:
    server, schedules = prepared("same", "changed")
    await schedules.resync("ns")
    server.requests.clear()
    server.put(f"{PATH}/changed", raw_cron("changed", suspend=True))
    assert await schedules.resync("ns") == 1
    assert reads(server) == [cron_job_path("ns", "changed")]
    changed = schedules.evaluator.locate("uid-changed")
    assert changed is not None
    assert changed.suspend


async def test_a_comparison_asks_for_metadata_and_reads_what_is_quarantined_once() -> None:
    server, schedules = prepared()
    server.put(f"{PATH}/odd", raw_cron("odd", concurrencyPolicy="Perhaps"))
    asked: list[str] = []
    pages = server.pages

    def noted(path: str, params: Any = None, *, accept: str = "") -> AsyncIterator[Any]:
        asked.append(accept)
        return pages(path, params)

    server.pages = noted  # type: ignore[method-assign]  # to see what it is asked for
    for _ in range(3):
        await schedules.resync("ns")
    assert asked == [METADATA_LIST_TYPE] * 3
    assert reads(server) == [cron_job_path("ns", "odd")]
    assert schedules.quarantine.counts_by_kind() == {"AsyncCronJob": 1}
    del server.objects[f"{PATH}/odd"]
    await schedules.resync("ns")
    assert not schedules.quarantine.counts_by_kind()


async def test_one_seen_while_the_list_is_read_is_kept() -> None:
    server, schedules = prepared("kept")
    real_pages = server.pages

    async def paged(path: str, params: Any = None, *, accept: str = "") -> Any:
        schedules.evaluator.on_update(cast("Any", raw_cron("late")))
        async for page in real_pages(path, params, accept=accept):
            yield page

    server.pages = paged  # type: ignore[method-assign]  # another is created meanwhile
    await schedules.resync("ns")
    assert known(schedules) == {"kept", "late"}


async def test_one_made_again_while_the_list_is_read_is_kept() -> None:
    server, schedules = prepared("again")
    await schedules.resync("ns")
    del server.objects[f"{PATH}/again"]
    real_pages = server.pages

    async def paged(path: str, params: Any = None, *, accept: str = "") -> Any:
        async for page in real_pages(path, params, accept=accept):
            yield page
        again = raw_cron("again")
        again["metadata"] |= {"uid": "another", "resourceVersion": "5000"}
        schedules.evaluator.on_update(again)

    server.pages = paged  # type: ignore[method-assign]  # the watch goes on meanwhile
    await schedules.resync("ns")
    assert schedules.evaluator.locate("another") is not None


async def test_another_namespaces_schedules_are_left_alone() -> None:
    _, schedules = prepared("kept")
    await schedules.resync("ns")
    await schedules.resync("other")
    assert known(schedules) == {"kept"}


async def test_a_list_shows_one_after_the_other_and_forgets_what_is_not_in_it() -> None:
    server, schedules = prepared("kept", "gone")
    store = schedules.store()
    await list_into(schedules.session, PATH, store)
    assert store.synced.is_set()
    assert known(schedules) == {"kept", "gone"}
    del server.objects[f"{PATH}/gone"]
    await list_into(schedules.session, PATH, store)
    assert known(schedules) == {"kept"}


async def test_a_list_that_breaks_off_forgets_nobody() -> None:
    server, schedules = prepared("one", "two")
    store = schedules.store()
    await list_into(schedules.session, PATH, store)

    real_pages = server.pages

    async def broken(path: str, params: Any = None, *, accept: str = "") -> Any:
        async for page in real_pages(path, params, accept=accept):
            yield {**page, "items": page["items"][:1]}
            raise ExpiredError(status=410)

    server.pages = broken  # type: ignore[method-assign]  # after the first page
    try:
        await list_into(schedules.session, PATH, store)
    except ExpiredError:
        pass
    else:
        raise AssertionError("the list did not break off")
    assert known(schedules) == {"one", "two"}


def test_one_that_cannot_be_taken_is_quarantined_until_it_is_gone() -> None:
    _, schedules = prepared()
    store = schedules.store()
    odd = raw_cron("odd", concurrencyPolicy="Perhaps")
    store.apply(WatchEvent("ADDED", odd))
    store.apply(WatchEvent("ADDED", raw_cron("well")))
    assert schedules.quarantine.counts_by_kind() == {"AsyncCronJob": 1}
    assert known(schedules) == {"well"}
    store.apply(WatchEvent("DELETED", odd))
    assert not schedules.quarantine.counts_by_kind()


def test_a_deletion_that_is_told_late_does_not_take_its_successor() -> None:
    _, schedules = prepared()
    again = raw_cron("again")
    again["metadata"] |= {"uid": "another", "resourceVersion": "30"}
    schedules.evaluator.on_update(again)
    schedules.evaluator.on_delete(("ns", "again"), "20")
    assert known(schedules) == {"again"}
    schedules.evaluator.on_delete(("ns", "again"), "40")
    assert not known(schedules)


def test_nothing_of_a_template_is_kept() -> None:
    _, schedules = prepared()

    payload = ["x" * 250_000]
    template = {"spec": {"type": "test", "payload": payload}}
    schedules.evaluator.on_update(raw_cron(jobTemplate=template))
    assert known(schedules) == {"nightly"}
    assert not _reaches(schedules, payload)
    assert _reaches(template, payload)


def _reaches(root: object, wanted: object) -> bool:
    """Return whether the object can be come by from the root."""
    seen, pending = {id(root)}, [root]
    while pending:
        for one in gc.get_referents(pending.pop()):
            if one is wanted:
                return True
            if id(one) not in seen and not isinstance(one, type) and not callable(one):
                seen.add(id(one))
                pending.append(one)
    return False
