"""Tells people of queues in which jobs wait although no worker serves them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from asyncjob_operator.core.job_event import Notice, queue_notice

NO_WORKERS: Final = "NoWorkers"
PATIENCE: Final = 300.0
"""A rollout or a worker that scales from zero takes its time."""

Queue = tuple[str, str]
"""Namespace and name."""


class Desertion:
    """`ages` are in seconds, of the oldest job that waits; `crews` are workers and slots."""

    def __init__(
        self,
        ages: Callable[[], Awaitable[Mapping[Queue, float]]],
        crews: Callable[[], Mapping[Queue, tuple[int, int]] | None],
        tell: Callable[[Notice], None],
    ) -> None:
        self._ages = ages
        self._crews = crews
        self._tell = tell

    async def look(self) -> None:
        """Look at all queues once; nothing is told while it cannot be known who works."""
        ages, crews = await self._ages(), self._crews()
        if crews is None:
            return
        for queue, age in ages.items():
            workers, _ = crews.get(queue, (0, 0))
            if age > PATIENCE and not workers:
                message = f"no worker serves the queue; its oldest job waits for {age:.0f} s"
                self._tell(queue_notice(*queue, NO_WORKERS, message))
