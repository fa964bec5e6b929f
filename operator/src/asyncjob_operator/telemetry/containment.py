"""Keeps what one object makes fail from reaching others: sets it aside, and tells people of it.

Whoever may write objects may write what nobody here has thought of. It costs that object alone,
until it is changed or, by time, tried again.
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
"""Seconds until an object is tried again that has not changed; doubled from one to the next."""


class ObjectKind(StrEnum):
    """What is set aside."""

    JOB = "AsyncJob"
    QUEUE = "AsyncQueue"
    CRON_JOB = "AsyncCronJob"
    POD = "Pod"
    LEASE = "Lease"
    NAMESPACE = "Namespace"


class ObjectRef(NamedTuple):
    """An object in one version; an empty version is one that is not known."""

    kind: ObjectKind
    namespace: str
    name: str
    version: str = ""

    @property
    def key(self) -> tuple[ObjectKind, str, str]:
        """Return what it is in whatever version."""
        return self.kind, self.namespace, self.name


def object_ref(kind: ObjectKind, obj: JsonObject) -> ObjectRef:
    """Return what an object is."""
    meta = child(obj, "metadata")
    return ObjectRef(
        kind, text(meta, "namespace"), text(meta, "name"), text(meta, "resourceVersion")
    )


class Activity(StrEnum):
    """What an object may be set aside in; getting through the same once more ends it."""

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
    """Contains what is raised inside; `pause` is then how long to leave the object alone."""

    __slots__ = ("_containment", "_doing", "_subject", "pause")

    def __init__(self, containment: "Containment", ref: ObjectRef, activity: Activity) -> None:
        self._containment = containment
        self._subject = ref
        self._doing = activity
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
            self._containment.record_success(self._subject, self._doing)
            return False
        if not isinstance(error, Exception):
            return False
        self.pause = self._containment.record_failure(self._subject, self._doing, error)
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
        """Return what contains whatever is raised inside because of this object."""
        return Guard(self, ref, activity)

    def record_failure(self, ref: ObjectRef, activity: Activity, error: Exception) -> float:
        """Set the object aside and return for how many seconds."""
        asides = self._set_aside.setdefault(ref.key, {})
        before = asides.get(activity)
        is_news = before is None or before.version != ref.version
        failures = 1 if before is None or is_news else before.failures + 1
        pause = min(INITIAL_PAUSE * 2.0 ** min(failures - 1, 30), MAX_PAUSE)
        asides[activity] = _SetAside(ref.version, failures, self._clock() + pause)
        if is_news:
            self._log(ref, activity, error)
            self._on_set_aside(ref.kind.value)
        return pause

    def record_success(self, ref: ObjectRef, activity: Activity) -> None:
        """Take that all went well with the object, in this version."""
        asides = self._set_aside.get(ref.key) if self._set_aside else None
        if asides is None:
            return
        for other, aside in list(asides.items()):
            if _is_newer(ref.version, aside.version) or (
                other is activity and not _is_newer(aside.version, ref.version)
            ):
                del asides[other]
        if not asides:
            del self._set_aside[ref.key]

    def is_set_aside(self, ref: ObjectRef) -> bool:
        """Return whether the object is set aside as it is and its pause is not over."""
        asides = self._set_aside.get(ref.key, {}).values()
        return any(it.version == ref.version and self._clock() < it.until for it in asides)

    def forget(self, kind: ObjectKind, namespace: str, name: str) -> None:
        """Take that there is no such object any more."""
        self._set_aside.pop((kind, namespace, name), None)

    def retain(
        self, kind: ObjectKind, namespace: str | None, present: Container[tuple[str, str]]
    ) -> None:
        """Forget those of a namespace, or of all, that are not among those present."""
        for key in self.set_aside_names(kind, namespace):
            if key not in present:
                self.forget(kind, *key)

    def set_aside_names(self, kind: ObjectKind, namespace: str | None) -> set[tuple[str, str]]:
        """Return namespace and name of those set aside in a namespace, or in all."""
        return {
            (space, name)
            for one, space, name in self._set_aside
            if one is kind and namespace in (None, space)
        }

    def counts_by_kind(self) -> Counter[str]:
        """Return how many objects are set aside."""
        return Counter(kind.value for kind, _, _ in self._set_aside)

    def _log(self, ref: ObjectRef, activity: Activity, error: Exception) -> None:
        """Say it with a traceback once a minute for one kind of failure: there may be many."""
        what = f"{type(error).__name__}: {error}"
        log.error(
            "object set aside",
            kind=ref.kind.value,
            object=f"{ref.namespace}/{ref.name}",
            version=ref.version,
            doing=activity.value,
            error=what[:500],
            exc_info=error
            if self._traceback_throttle.allow(f"{ref.kind} {activity} {type(error)}")
            else None,
        )


def _is_newer(version: str, than: str) -> bool:
    both = version.isdecimal() and than.isdecimal()
    return both and int(version) > int(than)
