"""AsyncQueues as the operator sees them."""

from collections.abc import Callable

from asyncjob.json_types import JsonObject, child, text
from asyncjob_operator.core.queue_numbers import status_of
from asyncjob_operator.core.queue_view import OPEN_QUEUE, QueueView, read_queue
from asyncjob_operator.observe.halls import Halls
from asyncjob_operator.observe.versions import Versions

Name = tuple[str, str]


class Queues:
    """Views by namespace and name; `changed` is called with a queue that is not as it was."""

    def __init__(self, changed: Callable[[str, str], None], halls: Halls) -> None:
        self._changed = changed
        self._halls = halls
        self._views: dict[Name, QueueView] = {}
        self._statuses: dict[Name, JsonObject] = {}
        self._versions: Versions[Name] = Versions()

    def __contains__(self, queue: Name) -> bool:
        return queue in self._views

    def view(self, namespace: str, queue: str) -> QueueView:
        """Return the view; a queue without an AsyncQueue is open."""
        return self._views.get((namespace, queue), OPEN_QUEUE)

    def status(self, queue: Name) -> JsonObject:
        """Return the numbers that the status of an AsyncQueue shows."""
        return self._statuses.get(queue, {})

    def saw(self, obj: JsonObject) -> None:
        """Take a queue as it was then; of its status only the book is news."""
        meta, view = child(obj, "metadata"), read_queue(obj)
        name = (text(meta, "namespace"), text(meta, "name"))
        if not self._versions.is_news(name, text(meta, "resourceVersion")):
            return
        self._statuses[name] = status_of(obj)
        is_new = self._views.get(name) != view
        if is_new:
            self._views[name] = view
            self._halls.set_limits(name, view.limits)
        self._halls.saw_book(name, obj)
        if is_new:
            self._changed(*name)

    def lost(self, namespace: str, queue: str) -> None:
        """Take that there is no such AsyncQueue any more."""
        self._versions.gone((namespace, queue))
        self._statuses.pop((namespace, queue), None)
        if self._views.pop((namespace, queue), None):
            self._halls.lost_queue((namespace, queue))
            self._changed(namespace, queue)

    def names_in(self, namespace: str | None) -> list[Name]:
        """Return the known queues of one namespace, or of all."""
        return [name for name in self._views if namespace in (None, name[0])]
