"""AsyncQueues as the operator sees them."""

from collections.abc import Callable

from asyncjob.json_types import JsonObject, child, text
from asyncjob_operator.core.queue_numbers import shown_stats
from asyncjob_operator.core.queue_view import OPEN_QUEUE, QueueView, read_queue
from asyncjob_operator.observe.halls import AdmissionCache
from asyncjob_operator.observe.versions import VersionTracker

QueueName = tuple[str, str]


class QueueCache:
    """Views by namespace and name; `on_change` is called with a queue that is not as it was."""

    def __init__(
        self, on_change: Callable[[str, str], None], admission_cache: AdmissionCache
    ) -> None:
        self._on_change = on_change
        self._admission_cache = admission_cache
        self._views: dict[QueueName, QueueView] = {}
        self._statuses: dict[QueueName, JsonObject] = {}
        self._versions: VersionTracker[QueueName] = VersionTracker()

    def __contains__(self, queue: QueueName) -> bool:
        return queue in self._views

    def view(self, namespace: str, queue: str) -> QueueView:
        """Return the view; a queue without an AsyncQueue is open."""
        return self._views.get((namespace, queue), OPEN_QUEUE)

    def status(self, queue: QueueName) -> JsonObject:
        """Return the numbers that the status of an AsyncQueue shows."""
        return self._statuses.get(queue, {})

    def on_update(self, obj: JsonObject) -> None:
        """Take a queue as it was then; of its status only the book is news."""
        meta, view = child(obj, "metadata"), read_queue(obj)
        name = (text(meta, "namespace"), text(meta, "name"))
        if not self._versions.accept(name, text(meta, "resourceVersion")):
            return
        self._statuses[name] = shown_stats(obj)
        is_new = self._views.get(name) != view
        if is_new:
            self._views[name] = view
            self._admission_cache.set_limits(name, view.limits)
        self._admission_cache.on_reservations(name, obj)
        if is_new:
            self._on_change(*name)

    def on_delete(self, namespace: str, queue: str) -> None:
        """Take that there is no such AsyncQueue any more."""
        self._versions.record_deleted((namespace, queue))
        self._statuses.pop((namespace, queue), None)
        if self._views.pop((namespace, queue), None):
            self._admission_cache.remove_queue((namespace, queue))
            self._on_change(namespace, queue)

    def names_in(self, namespace: str | None) -> list[QueueName]:
        """Return the known queues of one namespace, or of all."""
        return [name for name in self._views if namespace in (None, name[0])]
