"""The arrays that are known, as those need them that have submitted them, or wait for them.

Only names, phase and parent are read, so that an array is known here that nothing else can read: a
newer version may have written what this one does not know.
"""

from collections.abc import Callable
from dataclasses import dataclass

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import ARRAY_KIND, PARENT_LABEL
from asyncjob_operator.cache.adapters import ObjectName
from asyncjob_operator.cache.chunks import ArrayKey, array_key
from asyncjob_operator.cache.jobs import MAX_REMEMBERED_DELETED, UidIndex, is_newer
from asyncjob_operator.core.dependencies import PHASE_OF_ARRAY, RelatedJob


@dataclass(frozen=True, slots=True)
class _KnownArray:
    name: ObjectName
    version: str
    parent: str
    related: RelatedJob

    @property
    def ended(self) -> bool:
        return self.related.finished


class ChildArrays:
    """Which arrays have ended, and which job has submitted each.

    Listeners to news are called with the UID and name of each array that is seen for the first
    time, ends, is redriven or is deleted; listeners to cancels with the key of each unended array
    whose job is cancelled with all that it has submitted; listeners to lists once all arrays of a
    namespace are known.
    """

    def __init__(self) -> None:
        self._known: dict[str, _KnownArray] = {}
        self._uids: dict[ObjectName, str] = {}
        self._open_by_parent: UidIndex[str] = UidIndex()
        self._deleted: dict[str, None] = {}
        self._listed: set[str | None] = set()
        self._news_listeners: list[Callable[[str, ObjectName], None]] = []
        self._cancel_listeners: list[Callable[[ArrayKey], None]] = []
        self._list_listeners: list[Callable[[], None]] = []

    def add_news_listener(self, listener: Callable[[str, ObjectName], None]) -> None:
        """Call a function with each array that has news from now on."""
        self._news_listeners.append(listener)

    def add_list_listener(self, listener: Callable[[], None]) -> None:
        """Call a function whenever the arrays of one more namespace are known."""
        self._list_listeners.append(listener)

    def add_cancel_listener(self, listener: Callable[[ArrayKey], None]) -> None:
        """Call a function with each array that is to be cancelled with its job from now on."""
        self._cancel_listeners.append(listener)

    def has_ended(self, uid: str) -> bool | None:
        """Return whether an array has ended, or is deleted; None if it is not known."""
        if uid in self._deleted:
            return True
        known = self._known.get(uid)
        return known.ended if known else None

    def on_listed(self, namespace: str | None) -> None:
        """Note that all arrays of a namespace, or of all, have been listed."""
        if namespace not in self._listed:
            self._listed.add(namespace)
            for listener in self._list_listeners:
                listener()

    def are_listed(self, namespace: str) -> bool:
        """Return whether all arrays of a namespace are known, but for the newest."""
        return None in self._listed or namespace in self._listed

    def uid_of(self, name: ObjectName) -> str | None:
        """Return the UID of the array of this name."""
        return self._uids.get(name)

    def find(self, uid: str) -> RelatedJob | None:
        """Return what an array is to those that depend on it, None if it is not known."""
        known = self._known.get(uid)
        return known.related if known else None

    def is_deleted(self, uid: str) -> bool:
        """Return whether an array is remembered as deleted: none comes back."""
        return uid in self._deleted

    def on_update(self, obj: JsonObject) -> None:
        """Note how an array is, unless a newer version is known, or that it is deleted."""
        meta = child(obj, "metadata")
        uid, version = text(meta, "uid"), text(meta, "resourceVersion")
        before = self._known.get(uid)
        if uid in self._deleted or (before and not is_newer(version, before.version)):
            return
        name = (text(meta, "namespace"), text(meta, "name"))
        other = self._known.get(self._uids.get(name, uid))
        if other is not None and other is not before:
            if is_newer(other.version, version):
                return  # late news of an array whose name is another's by now
            self.on_delete(name)
        parent = text(child(meta, "labels"), PARENT_LABEL)
        self._forget(uid)
        now = self._known[uid] = _KnownArray(name, version, parent, related_array(obj))
        self._uids[name] = uid
        if parent and not now.ended:
            self._open_by_parent.add(parent, uid)
        if before is None or now.ended != before.ended:
            self._tell(uid, name)

    def on_delete(self, name: ObjectName, version: str = "", uid: str = "") -> None:
        """Note that an array was deleted at this version; another or newer of its name is kept."""
        held = self._uids.get(name, "")
        known = self._known.get(held)
        if known is None or (uid and uid != held):
            return
        if version and is_newer(known.version, version):
            return
        uid = held
        self._forget(uid)
        self._deleted[uid] = None
        if len(self._deleted) > MAX_REMEMBERED_DELETED:
            del self._deleted[next(iter(self._deleted))]
        self._tell(uid, known.name)

    def on_parent_cancelled(self, parent_uid: str) -> None:
        """Note that a job is cancelled, and with it what it has submitted."""
        for uid in self._open_by_parent.members(parent_uid):
            key = array_key(self._known[uid].name[0], uid)
            for listener in self._cancel_listeners:
                listener(key)

    def _forget(self, uid: str) -> None:
        known = self._known.pop(uid, None)
        if known is None:
            return
        del self._uids[known.name]
        if known.parent and not known.ended:
            self._open_by_parent.discard(known.parent, uid)

    def _tell(self, uid: str, name: ObjectName) -> None:
        for listener in self._news_listeners:
            listener(uid, name)


def related_array(obj: JsonObject) -> RelatedJob:
    """Return what an array is to those that depend on it; one in an unknown phase is unfinished."""
    meta, status = child(obj, "metadata"), child(obj, "status")
    phase = PHASE_OF_ARRAY.get(text(status, "phase"), Phase.PENDING)
    reason = text(status, "reason")
    return RelatedJob(
        text(meta, "namespace"),
        text(meta, "name"),
        text(meta, "uid"),
        phase,
        reason,
        kind=ARRAY_KIND,
    )
