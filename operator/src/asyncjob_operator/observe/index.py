"""UIDs by something they have in common; no empty group stays behind."""

from typing import Generic, TypeVar

K = TypeVar("K")


class UidIndex(Generic[K]):
    """Groups keep the order in which their members came."""

    def __init__(self) -> None:
        self._groups: dict[K, dict[str, None]] = {}

    def add(self, key: K, uid: str) -> None:
        """Put the UID into a group."""
        self._groups.setdefault(key, {})[uid] = None

    def discard(self, key: K, uid: str) -> None:
        """Take the UID out of a group, if it is there."""
        group = self._groups.get(key)
        if group is not None:
            group.pop(uid, None)
            if not group:
                del self._groups[key]

    def members(self, key: K) -> list[str]:
        """Return the UIDs of a group."""
        return list(self._groups.get(key, ()))

    def first(self, key: K) -> str | None:
        """Return the UID that came first of those in the group, None if it is empty."""
        return next(iter(self._groups.get(key, ())), None)

    def size(self, key: K) -> int:
        """Return how many are in a group."""
        return len(self._groups.get(key, ()))
