"""What the parts of a worker know anyway, as metrics; read in the thread that serves them."""

from collections.abc import Callable, Mapping

from asyncjob_worker import metrics
from asyncjob_worker.metrics import Samples, Spec
from asyncjob_worker.parts import Parts


def readings(parts: Parts, slots: int) -> Mapping[Spec, Callable[[], Samples]]:
    """Return for each metric that is read where it is read from."""
    claims, keeper, runner = parts.claimer.counts, parts.keeper, parts.runner
    return {
        metrics.CLAIMS: lambda: {
            ("won",): claims.won,
            ("conflict",): claims.conflicts,
            ("refused",): claims.refused,
        },
        metrics.RENEWALS: lambda: {
            ("stored",): keeper.renewals,
            ("failed",): keeper.renewal_failures,
        },
        metrics.RUNNING: lambda: {(): len(runner.running)},
        metrics.SLOTS: lambda: {(): slots},
        metrics.ABANDONED: lambda: {(): runner.abandoned},
        metrics.BACKLOG: lambda: {(): len(parts.backlog)},
    }
