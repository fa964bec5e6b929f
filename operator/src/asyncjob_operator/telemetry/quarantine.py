"""Contains an error that one object causes: quarantines the object, logs and counts that.

Objects may hold values that this code does not expect. Such an object must not stop the operator:
it alone is left out, until it changes or, for jobs and cron jobs, until a pause is over.
"""

from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Final, NamedTuple, Self

import structlog

from asyncjob.backoff import backoff_delay
from asyncjob.json_types import JsonObject, child, text
from asyncjob_operator.telemetry.logs import LogThrottle

log = structlog.get_logger()

INITIAL_PAUSE: Final = 60.0
MAX_PAUSE: Final = 3600.0
"""Seconds until an unchanged object is tried again; doubled after each failure.
Chosen, not measured: each try costs a traceback in the log, and only a new version of the object or
of the operator is likely to help, which both are tried at once."""


class ObjectKind(StrEnum):
    """Kinds of objects that can be quarantined."""

    JOB = "AsyncJob"
    QUEUE = "AsyncQueue"
    CRON_JOB = "AsyncCronJob"
    ARRAY = "AsyncArray"
    POD = "Pod"
    LEASE = "Lease"
    NAMESPACE = "Namespace"


class ObjectRef(NamedTuple):
    """An object in one version; the version is empty if unknown."""

    kind: ObjectKind
    namespace: str
    name: str
    version: str = ""

    @property
    def key(self) -> tuple[ObjectKind, str, str]:
        """Return what identifies the object in any version."""
        return self.kind, self.namespace, self.name


def object_ref(kind: ObjectKind, obj: JsonObject) -> ObjectRef:
    """Return the reference to an object in its version."""
    meta = child(obj, "metadata")
    return ObjectRef(
        kind, text(meta, "namespace"), text(meta, "name"), text(meta, "resourceVersion")
    )


class Activity(StrEnum):
    """What an object was quarantined in; succeeding in the same activity ends that."""

    OBSERVE = "observe"
    ACT = "act"
    RETAIN = "retain"
    MEASURE = "measure"
    REPORT = "report"
    WRITE = "write"
    RECORD_EVENT = "record-event"


@dataclass(slots=True)
class _Entry:
    version: str
    failures: int
    until: float


class Guard:
    """Suppresses exceptions inside; `pause` is then for how many seconds to leave the object."""

    __slots__ = ("_activity", "_quarantine", "_ref", "pause")

    def __init__(self, quarantine: "Quarantine", ref: ObjectRef, activity: Activity) -> None:
        self._quarantine = quarantine
        self._ref = ref
        self._activity = activity
        self.pause: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None:
            self._quarantine.record_success(self._ref, self._activity)
            return False
        if not isinstance(error, Exception):
            return False
        self.pause = self._quarantine.record_failure(self._ref, self._activity, error)
        return True


class Quarantine:
    """Objects that are quarantined.

    `on_quarantined` is called with the kind of each, once per version.
    """

    def __init__(self, clock: Callable[[], float], on_quarantined: Callable[[str], None]) -> None:
        self._clock = clock
        self._on_quarantined = on_quarantined
        self._entries: dict[tuple[ObjectKind, str, str], dict[Activity, _Entry]] = {}
        self._traceback_throttle = LogThrottle(clock)

    def guard(self, ref: ObjectRef, activity: Activity = Activity.OBSERVE) -> Guard:
        """Return a context manager that quarantines the object if an exception is raised inside."""
        return Guard(self, ref, activity)

    def record_failure(self, ref: ObjectRef, activity: Activity, error: Exception) -> float:
        """Quarantine the object and return for how many seconds."""
        by_activity = self._entries.setdefault(ref.key, {})
        previous = by_activity.get(activity)
        is_new = previous is None or previous.version != ref.version
        failures = 1 if previous is None or is_new else previous.failures + 1
        pause = backoff_delay(failures, INITIAL_PAUSE, MAX_PAUSE)
        by_activity[activity] = _Entry(ref.version, failures, self._clock() + pause)
        if is_new:
            self._log(ref, activity, error)
            self._on_quarantined(ref.kind.value)
        return pause

    def record_success(self, ref: ObjectRef, activity: Activity) -> None:
        """Record that an activity has succeeded with this version of the object."""
        by_activity = self._entries.get(ref.key) if self._entries else None
        if by_activity is None:
            return
        for other, entry in list(by_activity.items()):
            if _is_newer(ref.version, entry.version) or (
                other is activity and not _is_newer(entry.version, ref.version)
            ):
                del by_activity[other]
        if not by_activity:
            del self._entries[ref.key]

    def is_quarantined(self, ref: ObjectRef) -> bool:
        """Return whether the object is quarantined in this version and its pause is not over."""
        entries = self._entries.get(ref.key, {}).values()
        return any(
            entry.version == ref.version and self._clock() < entry.until for entry in entries
        )

    def forget(self, kind: ObjectKind, namespace: str, name: str) -> None:
        """Forget a deleted object."""
        self._entries.pop((kind, namespace, name), None)

    def retain(
        self, kind: ObjectKind, namespace: str | None, present: Container[tuple[str, str]]
    ) -> None:
        """Forget the objects of a namespace, or of all, that are not among `present`."""
        for key in self.quarantined_names(kind, namespace):
            if key not in present:
                self.forget(kind, *key)

    def quarantined_names(self, kind: ObjectKind, namespace: str | None) -> set[tuple[str, str]]:
        """Return namespace and name of the quarantined objects of a namespace, or in all."""
        return {
            (found_namespace, name)
            for found_kind, found_namespace, name in self._entries
            if found_kind is kind and namespace in (None, found_namespace)
        }

    def counts_by_kind(self) -> Counter[str]:
        """Return how many objects are quarantined, by kind."""
        return Counter(kind.value for kind, _, _ in self._entries)

    def _log(self, ref: ObjectRef, activity: Activity, error: Exception) -> None:
        """Log an error, with a traceback at most once a minute for the same kind of failure."""
        message = f"{type(error).__name__}: {error}"
        log.error(
            "object quarantined",
            kind=ref.kind.value,
            object=f"{ref.namespace}/{ref.name}",
            version=ref.version,
            doing=activity.value,
            error=message[:500],
            exc_info=error
            if self._traceback_throttle.allow(f"{ref.kind} {activity} {type(error)}")
            else None,
        )


def _is_newer(version: str, than: str) -> bool:
    both = version.isdecimal() and than.isdecimal()
    return both and int(version) > int(than)
