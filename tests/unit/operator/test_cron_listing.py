"""The comparison of schedules forgets those that are no more, and only those."""

from typing import Any, cast

from asyncjob.kube import KubeSession
from asyncjob.names import CRON_JOBS, collection
from asyncjob_operator.kube.clock import moment
from asyncjob_operator.observe.cron.children import Children
from asyncjob_operator.observe.cron.listing import compare
from asyncjob_operator.observe.cron.schedules import Schedules
from support.fake_session import FakeSession
from support.schedules import raw_cron


def scene(*names: str) -> tuple[FakeSession, KubeSession, Schedules]:
    server = FakeSession()
    for name in names:
        server.put(f"{collection('ns', CRON_JOBS)}/{name}", raw_cron(name))
    schedules = Schedules("me", Children(), moment, lambda _uid: None)
    return server, cast("KubeSession", server), schedules


def known(schedules: Schedules) -> set[str]:
    return {name for _, name in schedules.known(None)}


async def test_a_schedule_deleted_while_nobody_watched_is_forgotten() -> None:
    server, session, schedules = scene("kept", "gone")
    await compare(session, "ns", schedules)
    assert known(schedules) == {"kept", "gone"}
    del server.objects[f"{collection('ns', CRON_JOBS)}/gone"]
    await compare(session, "ns", schedules)
    assert known(schedules) == {"kept"}


async def test_one_seen_while_the_list_is_read_is_kept() -> None:
    server, session, schedules = scene("kept")
    real_list = server.list

    async def listed(path: str, params: Any = None) -> Any:
        schedules.saw(cast("Any", raw_cron("late")))
        async for obj in real_list(path, params):
            yield obj

    server.list = listed  # type: ignore[method-assign,assignment]  # another is created meanwhile
    await compare(session, "ns", schedules)
    assert known(schedules) == {"kept", "late"}


async def test_another_namespaces_schedules_are_left_alone() -> None:
    _, session, schedules = scene("kept")
    await compare(session, "ns", schedules)
    await compare(session, "other", schedules)
    assert known(schedules) == {"kept"}
