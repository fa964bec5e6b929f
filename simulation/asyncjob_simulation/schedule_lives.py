"""Lives of cron jobs: one spec after the other, and then the runs of half an hour."""

import asyncio
import calendar
import time
from collections.abc import Sequence
from typing import Any, Final

from asyncjob.names import CRON_JOBS, cron_job_path
from asyncjob_operator.core.schedules.calendar import parse_schedule
from asyncjob_simulation.clocks import true_time
from asyncjob_simulation.cluster import NAMESPACE
from asyncjob_simulation.dice import Dice
from asyncjob_simulation.quiet_cluster import STEP_SECONDS, Object, QuietCluster, work
from asyncjob_simulation.schema_values import made_value, spec_schema

SCHEDULE_BEGINS_AT: Final = 600.0
"""When a cron job has had all its specs, in seconds of virtual time."""

_SETTLE_SECONDS: Final = 90.0
_CHANGE_SECONDS: Final = 240.0
_WINDOW_SECONDS: Final = 1800.0

_VALUES: Final[dict[str, Sequence[Any]]] = {
    "schedule": ("*/5 * * * *", "0 * * * *", "H/10 * * * *", "17,39 * * * *", "0 0 29 2 *"),
    "timeZone": ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns"),
    "jitterSeconds": (0, 1, 30),
    "startingDeadlineSeconds": (5, 60, 315_360_000),
    "misfireLimit": (1, 100),
    "successfulJobsHistoryLimit": (0, 1, 1000),
    "failedJobsHistoryLimit": (0, 1, 1000),
}
_NO_STATE: Final = ("trigger", "backfill")
"""Fields that ask for something once; a fresh resource would be asked again."""


def schedule_spec(dice: Dice, number: int) -> Object:
    """Return a spec of a cron job."""
    schema = spec_schema(CRON_JOBS)
    plain = {
        name: one
        for name, one in schema["properties"].items()
        if name not in {*_NO_STATE, "jobTemplate"}
    }
    spec: Object = made_value(
        {"type": "object", "properties": plain, "required": ["schedule"]},
        dice,
        f"cron {number}",
        _VALUES,
    )
    template = {"type": "work", "queue": "lived", "payload": work(1.0)}
    return {**spec, "jobTemplate": {"spec": template}}


async def schedule_life(specs: Sequence[Object], begins_at: float, cluster: QuietCluster) -> Object:
    """Give a cron job these specs one after the other, and see when it runs in half an hour."""
    path = cron_job_path(NAMESPACE, "lived")
    for number, spec in enumerate(specs):
        cluster.put("AsyncCronJob", path, CRON_JOBS, "lived", spec)
        await asyncio.sleep(_CHANGE_SECONDS if number < len(specs) - 1 else STEP_SECONDS)
        if cluster.dice.happens(f"restart {number}", 0.5):
            cluster.restart_operator()
    await asyncio.sleep(max(0.0, cluster.until(begins_at)))
    begin = true_time(cluster.loop)
    await asyncio.sleep(_WINDOW_SECONDS + _SETTLE_SECONDS)
    cron = cluster.find(path) or {}
    status = cron.get("status", {})
    return {
        "runs": sorted(name for name in cluster.written_jobs if name.startswith("lived-")),
        "begin": begin,
        "next": status.get("nextScheduleTime"),
        "active": status.get("activeCount", 0),
        "spec": cron.get("spec"),
    }


def schedule_promises(spec: Object, end: Object) -> list[tuple[str, object, object]]:
    """Return where the runs are not those of the calendar."""
    expected = [] if spec.get("suspend") else _calendar(spec, end["begin"])
    came = [name for name in end["runs"] if _time_in(name) in _window(end["begin"])]
    wanted = [f"lived-{time.strftime('%Y%m%dt%H%Mz', time.gmtime(at))}" for at in expected]
    return [] if came == sorted(wanted) else [("the runs are not the calendar's", came, wanted)]


def _calendar(spec: Object, begin: float) -> list[int]:
    schedule = parse_schedule(spec["schedule"], spec.get("timeZone", "UTC"), f"{NAMESPACE}/lived")
    found: list[int] = []
    for at in schedule.times_after(begin):
        if at not in _window(begin):
            break
        found.append(at)
    return found


def _window(begin: float) -> range:
    """Return the time that is looked at, but for its ends, which jitter moves."""
    return range(int(begin) + 60, int(begin + _WINDOW_SECONDS) - 60)


def _time_in(name: str) -> int:
    return calendar.timegm(time.strptime(name.removeprefix("lived-"), "%Y%m%dt%H%Mz"))
