"""The loops that time drives: deadlines, comparison with the cluster, policies, retention."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from asyncjob.errors import ApiError
from asyncjob.kube import KubeSession
from asyncjob_operator.apply.desertion import Desertion
from asyncjob_operator.apply.dispatch import Leadership
from asyncjob_operator.apply.farewell import Farewell
from asyncjob_operator.apply.queue_reports import INTERVAL, QueueReports
from asyncjob_operator.apply.sweep import Sweep
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.policies import not_in_force
from asyncjob_operator.observe.listing import Repairs, compare
from asyncjob_operator.observe.observer import Observer
from asyncjob_operator.telemetry.metrics import Metrics
from asyncjob_operator.telemetry.tally import Tally

log = structlog.get_logger()

LONGEST_SLEEP: Final = 5.0
LONGEST_BLIND: Final = 10.0
"""Seconds between two tries to watch, each of which begins with a comparison.

kopf cannot parse what is nested some 1,000 levels deep: with such a schedule this is how late other
schedules are seen.
"""

DESERTION_INTERVAL: Final = 30.0
BATCH: Final = 200


@dataclass(slots=True)
class Heartbeat:
    """When the deadline loop last turned; liveness looks at it."""

    at: float = 0.0


async def keep_time(observer: Observer, metrics: Metrics, heartbeat: Heartbeat) -> None:
    """Look at each job when its time has come."""
    while True:
        heartbeat.at = monotonic()
        await observer.agenda.sleep(heartbeat.at, LONGEST_SLEEP)
        started_at = monotonic()
        late_by = observer.agenda.late_by(started_at)
        if late_by is not None:
            metrics.scheduler_lag.observe(late_by)
        looked = await _look_at_due(observer, started_at)
        metrics.cycles.inc()
        metrics.cycle_seconds.observe(monotonic() - started_at)
        log.debug("deadlines judged" if looked else "nothing due", jobs=looked)


async def _look_at_due(observer: Observer, now: float) -> int:
    looked = 0
    while due := observer.agenda.pop_due(now, BATCH):
        for uid in due:
            observer.look(uid)
        looked += len(due)
        await asyncio.sleep(0)
    return looked


async def keep_comparing(
    session: KubeSession,
    scopes: tuple[str | None, ...],
    observer: Observer,
    *,
    metrics: Metrics,
    interval: float,
    compared: Callable[[int], None],
) -> None:
    """Compare what is known with what there is, every `interval` seconds.

    `compared` is told each time how many jobs had to be repaired.
    """
    while True:
        await asyncio.sleep(interval)
        compared(await compare_all(session, scopes, observer, metrics))


async def compare_all(
    session: KubeSession, scopes: tuple[str | None, ...], observer: Observer, metrics: Metrics
) -> int:
    """Compare all there is, once, and return how much was repaired."""
    repaired = 0
    for namespace in scopes:
        try:
            repaired += (await compare_one(session, namespace, observer, metrics)).total
        except ApiError as error:
            log.warning("comparison failed", namespace=namespace, error=str(error))
    return repaired


async def compare_one(
    session: KubeSession, namespace: str | None, observer: Observer, metrics: Metrics
) -> Repairs:
    """Compare one namespace, or all, and count what was repaired; raises what a request raises."""
    repairs = await compare(session, namespace, observer)
    for kind, count in repairs.by_kind.items():
        metrics.repairs.labels(kind).inc(count)
    level = log.info if repairs.total else log.debug
    level("compared with the cluster", namespace=namespace, repaired=repairs.total)
    return repairs


async def keep_checking(session: KubeSession, said: list[str], interval: float) -> None:
    """Look at the policies every `interval` seconds; say what has changed since it was `said`."""
    while True:
        await asyncio.sleep(interval)
        try:
            lines = await not_in_force(session)
        except ApiError as error:
            log.warning("policies not looked at", error=str(error))
            continue
        if lines != said:
            _say_policies(lines)
        said = lines


def _say_policies(lines: list[str]) -> None:
    for line in lines:
        log.warning(line)
    if not lines:
        log.info("all policies are in force again")


async def keep_reporting(tally: Tally) -> None:
    """Log what was recovered, once a second at most."""
    while True:
        await asyncio.sleep(1.0)
        tally.report()


async def keep_queue_reports(reports: QueueReports, leadership: Leadership) -> None:
    """Write the numbers of queues, every few seconds, while leading."""
    while True:
        await leadership.elected()
        await reports.write()
        await asyncio.sleep(INTERVAL)


async def keep_queues_served(desertion: Desertion, leadership: Leadership) -> None:
    """Tell of queues without workers, looking every few seconds, while leading."""
    while True:
        await leadership.elected()
        await desertion.look()
        await asyncio.sleep(DESERTION_INTERVAL)


async def keep_workers(farewell: Farewell, leadership: Leadership, interval: float) -> None:
    """Remove the Leases of silent workers, looking every `interval` seconds, while leading."""
    while True:
        await leadership.elected()
        try:
            await farewell.look()
        except ApiError as error:
            log.warning("worker leases not listed", error=str(error))
        await asyncio.sleep(interval)


async def keep_retention(sweep: Sweep, leadership: Leadership, interval: float) -> None:
    """Remove finished jobs, every `interval` seconds, while leading."""
    while True:
        await leadership.elected()
        removed = await sweep.sweep()
        if removed:
            log.info("finished jobs removed", count=removed)
        await asyncio.sleep(interval)
