"""What the parts of a worker know anyway, for metrics and probes; read in the thread of those."""

from collections.abc import Callable, Mapping

from asyncjob.instruments import Samples
from asyncjob.metrics import Spec, worker
from asyncjob_worker.drain import Drain
from asyncjob_worker.health import Health, Signs
from asyncjob_worker.parts import Parts
from asyncjob_worker.settings import Settings


def readings(parts: Parts, slots: int) -> Mapping[Spec, Callable[[], Samples]]:
    """Return for each metric that is read where it is read from."""
    claims, keeper, runner = parts.claimer.counts, parts.keeper, parts.runner
    return {
        worker.CLAIMS: lambda: {
            ("won",): claims.won,
            ("conflict",): claims.conflicts,
            ("refused",): claims.refused,
            ("postponed",): claims.postponed,
        },
        worker.RENEWALS: lambda: {
            ("stored",): keeper.renewals,
            ("failed",): keeper.renewal_failures,
        },
        worker.LATE: lambda: {(): keeper.lateness.seconds},
        worker.RUNNING: lambda: {(): len(runner.running)},
        worker.SLOTS: lambda: {(): slots},
        worker.ABANDONED: lambda: {(): runner.abandoned},
        worker.BACKLOG: lambda: {(): len(parts.backlog)},
    }


def health_of(parts: Parts, drain: Drain, settings: Settings) -> Health:
    """Return what judges whether a process with these parts lives and is ready."""

    def signs() -> Signs:
        return Signs(
            announced=parts.keeper.alive,
            queue_known=parts.queue.synced,
            workers_known=parts.roster.synced,
            jobs_watched=parts.feed.watched,
            enforcement_in_doubt=parts.enforcement.in_doubt,
            draining=drain.is_begun,
        )

    return Health(parts.pulse, parts.keeper, signs, stall_limit=settings.stall_limit)
