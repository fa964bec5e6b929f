"""Contains an error that one object causes: sets the object aside, logs and counts that.

Objects may hold values that this code does not expect. Such an object must not stop the operator:
it alone is left out, until it changes or, for jobs and schedules, until a pause is over.
"""

from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Final, NamedTuple, Self

import structlog

from asyncjob.json_types import JsonObject, child, text
from asyncjob_operator.telemetry.logs import LogThrottle

log = structlog.get_logger()

INITIAL_PAUSE: Final = 60.0
MAX_PAUSE: Final = 3600.0
"""Seconds until an unchanged object is tried again; doubled after each failure."""


class ObjectKind(StrEnum):
    """Kinds of objects that can be set aside."""

    JOB = "AsyncJob"
    QUEUE = "AsyncQueue"
    CRON_JOB = "AsyncCronJob"
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
    """What an object was set aside in; succeeding in the same activity ends that."""

    OBSERVE = "observe"
    ACT = "act"
    RETAIN = "retain"
    MEASURE = "measure"
    REPORT = "report"
    WRITE = "write"
    RECORD_EVENT = "tell"


@dataclass(slots=True)
class _SetAside:
    version: str
    failures: int
    until: float


class Guard:
    """Suppresses exceptions inside; `pause` is then for how many seconds to leave the object."""

    __slots__ = ("_activity", "_containment", "_ref", "pause")

    def __init__(self, containment: "Containment", ref: ObjectRef, activity: Activity) -> None:
        self._containment = containment
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
            self._containment.record_success(self._ref, self._activity)
            return False
        if not isinstance(error, Exception):
            return False
        self.pause = self._containment.record_failure(self._ref, self._activity, error)
        return True


class Containment:
    """Objects that are set aside.

    `on_set_aside` is called with the kind of each, once per version.
    """

    def __init__(self, clock: Callable[[], float], on_set_aside: Callable[[str], None]) -> None:
        self._clock = clock
        self._on_set_aside = on_set_aside
        self._set_aside: dict[tuple[ObjectKind, str, str], dict[Activity, _SetAside]] = {}
        self._traceback_throttle = LogThrottle(clock)

    def guard(self, ref: ObjectRef, activity: Activity = Activity.OBSERVE) -> Guard:
        """Return a context manager that sets this object aside if an exception is raised inside."""
        return Guard(self, ref, activity)

    def record_failure(self, ref: ObjectRef, activity: Activity, error: Exception) -> float:
        """Set the object aside and return for how many seconds."""
        by_activity = self._set_aside.setdefault(ref.key, {})
        previous = by_activity.get(activity)
        is_new = previous is None or previous.version != ref.version
        failures = 1 if previous is None or is_new else previous.failures + 1
        pause = min(INITIAL_PAUSE * 2.0 ** min(failures - 1, 30), MAX_PAUSE)
        by_activity[activity] = _SetAside(ref.version, failures, self._clock() + pause)
        if is_new:
            self._log(ref, activity, error)
            self._on_set_aside(ref.kind.value)
        return pause

    def record_success(self, ref: ObjectRef, activity: Activity) -> None:
        """Record that an activity has succeeded with this version of the object."""
        by_activity = self._set_aside.get(ref.key) if self._set_aside else None
        if by_activity is None:
            return
        for other, entry in list(by_activity.items()):
            if _is_newer(ref.version, entry.version) or (
                other is activity and not _is_newer(entry.version, ref.version)
            ):
                del by_activity[other]
        if not by_activity:
            del self._set_aside[ref.key]

    def is_set_aside(self, ref: ObjectRef) -> bool:
        """Return whether the object is set aside in this version and its pause is not over."""
        entries = self._set_aside.get(ref.key, {}).values()
        return any(
            entry.version == ref.version and self._clock() < entry.until for entry in entries
        )

    def forget(self, kind: ObjectKind, namespace: str, name: str) -> None:
        """Forget a deleted object."""
        self._set_aside.pop((kind, namespace, name), None)

    def retain(
        self, kind: ObjectKind, namespace: str | None, present: Container[tuple[str, str]]
    ) -> None:
        """Forget the objects of a namespace, or of all, that are not among `present`."""
        for key in self.set_aside_names(kind, namespace):
            if key not in present:
                self.forget(kind, *key)

    def set_aside_names(self, kind: ObjectKind, namespace: str | None) -> set[tuple[str, str]]:
        """Return namespace and name of the objects set aside in a namespace, or in all."""
        return {
            (found_namespace, name)
            for found_kind, found_namespace, name in self._set_aside
            if found_kind is kind and namespace in (None, found_namespace)
        }

    def counts_by_kind(self) -> Counter[str]:
        """Return how many objects are set aside, by kind."""
        return Counter(kind.value for kind, _, _ in self._set_aside)

    def _log(self, ref: ObjectRef, activity: Activity, error: Exception) -> None:
        """Log an error, with a traceback at most once a minute for the same kind of failure."""
        message = f"{type(error).__name__}: {error}"
        log.error(
            "object set aside",
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
