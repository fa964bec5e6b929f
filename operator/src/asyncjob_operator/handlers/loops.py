"""The loops that time drives: deadlines, comparison with the cluster, policies, retention."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

import structlog

from asyncjob.errors import ApiError
from asyncjob.kube import KubeSession
from asyncjob.kube.turns import Turns
from asyncjob_operator.apply.desertion import Desertion
from asyncjob_operator.apply.dispatch import Leadership
from asyncjob_operator.apply.farewell import Farewell
from asyncjob_operator.apply.queue_reports import INTERVAL, QueueReports
from asyncjob_operator.apply.sweep import Sweep
from asyncjob_operator.core.vitals import Pulse
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

Seen = Callable[[str | None], None]
"""Takes a namespace, or None for all, of which everything is known as it is now."""


async def keep_time(observer: Observer, metrics: Metrics, pulse: Pulse) -> None:
    """Look at each job when its time has come."""
    while True:
        pulse.beat()
        await observer.agenda.sleep(monotonic(), LONGEST_SLEEP)
        started_at = monotonic()
        late_by = observer.agenda.late_by(started_at)
        if late_by is not None:
            metrics.scheduler_lag.observe(late_by)
        looked = await _look_at_due(observer, started_at)
        metrics.cycles.inc()
        metrics.cycle_seconds.observe(monotonic() - started_at)
        log.debug("deadlines judged" if looked else "nothing due", jobs=looked)


async def _look_at_due(observer: Observer, now: float) -> int:
    looked, turns = 0, Turns()
    while due := observer.agenda.pop_due(now, BATCH):
        for uid in due:
            observer.look(uid)
            await turns.give()
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
    seen: Seen,
    pulse: Pulse,
) -> None:
    """Compare what is known with what there is, every `interval` seconds.

    `compared` is told each time how many jobs had to be repaired, `seen` each namespace that could
    be compared.
    """
    while True:
        with pulse.idle():
            await asyncio.sleep(interval)
        repaired = 0
        for namespace in scopes:
            try:
                repaired += (await compare_one(session, namespace, observer, metrics)).total
            except ApiError as error:
                pulse.turned()
                log.warning("comparison failed", namespace=namespace, error=str(error))
            else:
                pulse.beat()
                seen(namespace)
        compared(repaired)


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


async def keep_checking(
    session: KubeSession, said: list[str], interval: float, pulse: Pulse
) -> None:
    """Look at the policies every `interval` seconds; say what has changed since it was `said`."""
    while True:
        with pulse.idle():
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


async def keep_reporting(tally: Tally, pulse: Pulse) -> None:
    """Log what was recovered, once a second at most."""
    while True:
        with pulse.idle():
            await asyncio.sleep(1.0)
        tally.report()


async def _rounds(leadership: Leadership, interval: float, pulse: Pulse) -> AsyncGenerator[None]:
    """Yield once a round while leading; what comes in between need not come."""
    while True:
        with pulse.idle():
            await leadership.elected()
        yield
        pulse.beat()
        with pulse.idle():
            await asyncio.sleep(interval)


async def keep_queue_reports(reports: QueueReports, leadership: Leadership, pulse: Pulse) -> None:
    """Write the numbers of queues, every few seconds, while leading."""
    async for _ in _rounds(leadership, INTERVAL, pulse):
        await reports.write(pulse.beat)


async def keep_queues_served(desertion: Desertion, leadership: Leadership, pulse: Pulse) -> None:
    """Tell of queues without workers, looking every few seconds, while leading."""
    async for _ in _rounds(leadership, DESERTION_INTERVAL, pulse):
        await desertion.look()


async def keep_workers(
    farewell: Farewell, leadership: Leadership, interval: float, pulse: Pulse
) -> None:
    """Remove the Leases of silent workers, looking every `interval` seconds, while leading."""
    async for _ in _rounds(leadership, interval, pulse):
        try:
            await farewell.look()
        except ApiError as error:
            log.warning("worker leases not listed", error=str(error))


async def keep_retention(
    sweep: Sweep, leadership: Leadership, interval: float, pulse: Pulse
) -> None:
    """Remove finished jobs, every `interval` seconds, while leading."""
    async for _ in _rounds(leadership, interval, pulse):
        removed = await sweep.sweep(pulse.beat)
        if removed:
            log.info("finished jobs removed", count=removed)
