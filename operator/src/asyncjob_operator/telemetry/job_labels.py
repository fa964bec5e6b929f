"""Which namespaces, queues, types and reasons are shown by name: a bounded number of each.

Who may create jobs chooses these texts, and must not be able to fill Prometheus with series.
"""

from typing import Final

from asyncjob.lifecycle.phases import Reason
from asyncjob.metrics import OTHER_LABEL, CardinalityLimit

MAX_QUEUES: Final = 200
"""Pairs of namespace and queue; further ones are shown as `other`, both."""

MAX_TYPES: Final = 100
MAX_QUEUE_TYPES: Final = 1000
"""Of a queue and a type together, and of both with a reason; further ones lose their type."""

Labels = tuple[str, ...]

_REASONS: Final = frozenset(reason.value for reason in Reason)


class JobLabels:
    """The labels of one operator process, shared by all its metrics of jobs."""

    def __init__(self) -> None:
        self.of_queue = CardinalityLimit(MAX_QUEUES)
        self._type_bound = CardinalityLimit(MAX_TYPES)
        self._queue_type_bound = CardinalityLimit(MAX_QUEUE_TYPES, _without_type)
        self._reason_bound = CardinalityLimit(MAX_QUEUE_TYPES, _without_type)

    def of_type(self, namespace: str, queue: str, type_: str) -> Labels:
        """Return namespace, queue and type."""
        return self._queue_type_bound(
            self.of_queue((namespace, queue)) + self._type_bound((type_,))
        )

    def of_reason(self, namespace: str, queue: str, type_: str, reason: str) -> Labels:
        """Return namespace, queue, type and reason."""
        known = reason if reason in _REASONS else OTHER_LABEL
        return self._reason_bound((*self.of_type(namespace, queue, type_), known))


def _without_type(labels: Labels) -> Labels:
    return (*labels[:2], OTHER_LABEL, *labels[3:])
