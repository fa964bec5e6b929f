"""What the metrics of all jobs are counted from, as of the moment somebody asks."""

from asyncjob_operator.observe.observer import JobController
from asyncjob_operator.telemetry.job_metrics import JobStats, NamespacedName


class JobStatsCollector:
    """Shows nothing before it was taken, which it is once all jobs have been listed."""

    def __init__(self, controller: JobController, finished_limit: int | None) -> None:
        self._controller = controller
        self._finished_limit = finished_limit
        self._oldest_wait: dict[NamespacedName, float] | None = None

    async def refresh(self) -> None:
        """Go through all jobs that wait, letting others have their turn meanwhile."""
        self._oldest_wait = await self._controller.queue_stats.oldest_waits()

    def stats(self) -> JobStats | None:
        """Return all that is to be shown."""
        if self._oldest_wait is None:
            return None
        observer = self._controller
        return JobStats(
            observer.store.counts,
            self._oldest_wait,
            observer.worker_registry.capacity_by_queue(),
            self._finished_limit,
        )
