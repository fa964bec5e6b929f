"""The arrays that are known, as the jobs that have submitted them and wait for them need them."""

from collections.abc import Callable

from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES
from asyncjob.lifecycle.arrays.state import ArrayView
from asyncjob_operator.cache.chunks import array_key
from asyncjob_operator.cache.jobs import UidIndex

Listener = Callable[[str], None]


class ChildArrays:
    """UIDs of the known arrays that have not ended, and which job has submitted each.

    Listeners to ends are called with the UID of each array that ends, or is deleted; listeners to
    cancels with the key of each unended array whose job is cancelled with all it has submitted.
    """

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, str]] = {}
        """UID of the parent and key of the array, by UID."""

        self._by_parent: UidIndex[str] = UidIndex()
        self._end_listeners: list[Listener] = []
        self._cancel_listeners: list[Listener] = []

    def __contains__(self, uid: object) -> bool:
        """Return whether an array is known, and has not ended."""
        return uid in self._open

    def add_end_listener(self, listener: Listener) -> None:
        """Call a function with each array that ends from now on."""
        self._end_listeners.append(listener)

    def add_cancel_listener(self, listener: Listener) -> None:
        """Call a function with each array that is to be cancelled with its job from now on."""
        self._cancel_listeners.append(listener)

    def on_update(self, array: ArrayView) -> None:
        """Note how an array is."""
        if array.state.phase in ENDED_ARRAY_PHASES:
            self.on_delete(array.uid)
        elif array.uid not in self._open:
            key = array_key(array.namespace, array.uid)
            self._open[array.uid] = (array.parent_uid, key)
            if array.parent_uid:
                self._by_parent.add(array.parent_uid, array.uid)

    def on_delete(self, uid: str) -> None:
        """Note that an array has ended, or is gone."""
        parent, _ = self._open.pop(uid, ("", ""))
        if parent:
            self._by_parent.discard(parent, uid)
        for listener in self._end_listeners:
            listener(uid)

    def on_parent_cancelled(self, parent_uid: str) -> None:
        """Note that a job is cancelled, and with it what it has submitted."""
        for uid in self._by_parent.members(parent_uid):
            for listener in self._cancel_listeners:
                listener(self._open[uid][1])
