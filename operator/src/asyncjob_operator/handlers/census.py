"""What the metrics of all jobs are counted from, as of the moment somebody asks."""

from asyncjob_operator.observe.observer import Observer
from asyncjob_operator.telemetry.job_metrics import Look, Queue


class Census:
    """Shows nothing before it was taken, which it is once all jobs have been listed."""

    def __init__(self, observer: Observer, finished_limit: int | None) -> None:
        self._observer = observer
        self._finished_limit = finished_limit
        self._ages: dict[Queue, float] | None = None

    async def take(self) -> None:
        """Go through all jobs that wait, letting others have their turn meanwhile."""
        self._ages = await self._observer.survey.ages()

    def look(self) -> Look | None:
        """Return all that is to be shown."""
        if self._ages is None:
            return None
        observer = self._observer
        return Look(
            observer.store.counts,
            self._ages,
            observer.roll_calls.crews(),
            self._finished_limit,
        )
