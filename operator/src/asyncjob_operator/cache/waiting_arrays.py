"""Arrays that have not started and depend on jobs or other arrays, by what they depend on."""

from collections.abc import Callable, Iterable

from asyncjob.lifecycle.arrays.state import ArrayView
from asyncjob_operator.cache.chunks import ArrayKey, array_key
from asyncjob_operator.cache.jobs import UidIndex
from asyncjob_operator.core.dependencies import DependencyKey, dependency_key


class WaitingArrays:
    """Arrays that wait, by UID and by dependency.

    `evaluate_later` is called with the keys of arrays for which something has changed.
    """

    def __init__(self, evaluate_later: Callable[[Iterable[ArrayKey]], None]) -> None:
        self._evaluate_later = evaluate_later
        self._arrays: dict[str, ArrayView] = {}
        self._dependents: UidIndex[DependencyKey] = UidIndex()

    def put(self, array: ArrayView) -> None:
        """Note what an array depends on, as long as it has not started."""
        self.discard(array.uid)
        if not array.pending_dependencies:
            return
        self._arrays[array.uid] = array
        for dependency in array.pending_dependencies:
            self._dependents.add(dependency_key(array.namespace, dependency), array.uid)

    def discard(self, uid: str) -> None:
        """Forget an array."""
        array = self._arrays.pop(uid, None)
        if array is None:
            return
        for dependency in array.pending_dependencies:
            self._dependents.discard(dependency_key(array.namespace, dependency), uid)

    def __len__(self) -> int:
        return len(self._arrays)

    def get(self, uid: str) -> ArrayView | None:
        """Return an array that waits, None if this one does not."""
        return self._arrays.get(uid)

    def dependents(self, key: DependencyKey) -> list[str]:
        """Return the arrays that depend on this."""
        return self._dependents.members(key)

    def has_dependents(self, key: DependencyKey) -> bool:
        """Return whether any array depends on this."""
        return self._dependents.size(key) > 0

    def all(self) -> list[str]:
        """Return the UIDs of all that wait."""
        return list(self._arrays)

    def wake(self, uids: Iterable[str]) -> None:
        """Have these evaluated soon, as far as they wait."""
        waiting = [self._arrays[uid] for uid in uids if uid in self._arrays]
        if waiting:
            self._evaluate_later([array_key(one.namespace, one.uid) for one in waiting])
