"""What the parts of a worker know anyway, for metrics and probes; read in the thread of those."""

from collections.abc import Callable, Mapping

from asyncjob.instruments import Samples
from asyncjob.metrics import MetricSpec, worker
from asyncjob_worker.drain import Drain
from asyncjob_worker.health import Health, ReadinessState
from asyncjob_worker.parts import Components
from asyncjob_worker.settings import Settings


def metric_sources(
    components: Components, slots: int
) -> Mapping[MetricSpec, Callable[[], Samples]]:
    """Return for each metric that is read where it is read from."""
    claims, keeper, runner = components.claimer.counts, components.heartbeat, components.runner
    return {
        worker.CLAIMS: lambda: {
            ("won",): claims.won,
            ("conflict",): claims.conflicts,
            ("refused",): claims.refused,
            ("postponed",): claims.postponed,
        },
        worker.LEASE_RENEWALS: lambda: {
            ("stored",): keeper.renewals,
            ("failed",): keeper.renewal_failures,
        },
        worker.HEARTBEAT_LATE_SECONDS: lambda: {(): keeper.lateness.seconds},
        worker.RUNNING: lambda: {(): len(runner.running)},
        worker.SLOTS: lambda: {(): slots},
        worker.ABANDONED: lambda: {(): runner.abandoned},
        worker.BACKLOG: lambda: {(): len(components.backlog)},
    }


def build_health(components: Components, drain: Drain, settings: Settings) -> Health:
    """Return what judges whether a process with these parts lives and is ready."""

    def signs() -> ReadinessState:
        return ReadinessState(
            registered=components.heartbeat.alive,
            queue_known=components.queue.synced,
            workers_known=components.live_workers.synced,
            watching_jobs=components.watcher.is_watching,
            enforcement_unproven=components.enforcement.unproven,
            draining=drain.is_begun,
        )

    return Health(
        components.loop_liveness, components.heartbeat, signs, stall_limit=settings.stall_limit
    )
