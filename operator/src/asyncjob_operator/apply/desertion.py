"""Tells people of queues in which jobs wait although no worker serves them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from asyncjob_operator.core.job_event import KubernetesEvent, queue_event

NO_WORKERS: Final = "NoWorkers"
UNSERVED_SECONDS: Final = 300.0
"""A rollout or a worker that scales from zero takes its time."""

NamespacedName = tuple[str, str]
"""Namespace and name."""


class UnservedQueueEvents:
    """`oldest_waits` are in seconds, of the oldest job that waits.

    `capacities` are workers and slots.
    """

    def __init__(
        self,
        oldest_waits: Callable[[], Awaitable[Mapping[NamespacedName, float]]],
        capacities: Callable[[], Mapping[NamespacedName, tuple[int, int]] | None],
        record_event: Callable[[KubernetesEvent], None],
    ) -> None:
        self._oldest_waits = oldest_waits
        self._capacities = capacities
        self._record_event = record_event

    async def check(self) -> None:
        """Look at all queues once; nothing is told while it cannot be known who works."""
        ages, crews = await self._oldest_waits(), self._capacities()
        if crews is None:
            return
        for queue, age in ages.items():
            workers, _ = crews.get(queue, (0, 0))
            if age > UNSERVED_SECONDS and not workers:
                message = f"no worker serves the queue; its oldest job waits for {age:.0f} s"
                self._record_event(queue_event(*queue, NO_WORKERS, message))
