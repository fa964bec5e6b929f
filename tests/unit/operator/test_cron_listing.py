"""The comparison of schedules forgets those that are no more, and only those."""

from typing import Any, cast

from asyncjob.kube import KubeSession
from asyncjob.names import CRON_JOBS, collection_path
from asyncjob_operator.cache.scheduled_jobs import ScheduledJobCache
from asyncjob_operator.controllers.cron_job_controller import CronJobController, resync_cron_jobs
from asyncjob_operator.kube.clock import current_time
from support.fake_session import FakeSession
from support.schedules import raw_cron


def scene(*names: str) -> tuple[FakeSession, KubeSession, CronJobController]:
    server = FakeSession()
    for name in names:
        server.put(f"{collection_path('ns', CRON_JOBS)}/{name}", raw_cron(name))
    schedules = CronJobController("me", ScheduledJobCache(), current_time, lambda _uid: None)
    return server, cast("KubeSession", server), schedules


def known(schedules: CronJobController) -> set[str]:
    return {name for _, name in schedules.names_in(None)}


async def test_a_schedule_deleted_while_nobody_watched_is_forgotten() -> None:
    server, session, schedules = scene("kept", "gone")
    await resync_cron_jobs(session, "ns", schedules)
    assert known(schedules) == {"kept", "gone"}
    del server.objects[f"{collection_path('ns', CRON_JOBS)}/gone"]
    await resync_cron_jobs(session, "ns", schedules)
    assert known(schedules) == {"kept"}


async def test_one_seen_while_the_list_is_read_is_kept() -> None:
    server, session, schedules = scene("kept")
    real_list = server.list

    async def listed(path: str, params: Any = None) -> Any:
        schedules.on_update(cast("Any", raw_cron("late")))
        async for obj in real_list(path, params):
            yield obj

    server.list = listed  # type: ignore[method-assign,assignment]  # another is created meanwhile
    await resync_cron_jobs(session, "ns", schedules)
    assert known(schedules) == {"kept", "late"}


async def test_another_namespaces_schedules_are_left_alone() -> None:
    _, session, schedules = scene("kept")
    await resync_cron_jobs(session, "ns", schedules)
    await resync_cron_jobs(session, "other", schedules)
    assert known(schedules) == {"kept"}
