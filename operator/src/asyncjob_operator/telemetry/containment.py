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
from asyncjob_operator.telemetry.repeats import Repeats

log = structlog.get_logger()

FIRST_PAUSE: Final = 60.0
LONGEST_PAUSE: Final = 3600.0
"""Seconds until an object is tried again that has not changed; doubled from one to the next."""


class Kind(StrEnum):
    """What is set aside."""

    JOB = "AsyncJob"
    QUEUE = "AsyncQueue"
    CRON_JOB = "AsyncCronJob"
    POD = "Pod"
    LEASE = "Lease"
    NAMESPACE = "Namespace"


class Subject(NamedTuple):
    """An object in one version; an empty version is one that is not known."""

    kind: Kind
    namespace: str
    name: str
    version: str = ""

    @property
    def key(self) -> tuple[Kind, str, str]:
        """Return what it is in whatever version."""
        return self.kind, self.namespace, self.name


def subject(kind: Kind, obj: JsonObject) -> Subject:
    """Return what an object is."""
    meta = child(obj, "metadata")
    return Subject(kind, text(meta, "namespace"), text(meta, "name"), text(meta, "resourceVersion"))


class Doing(StrEnum):
    """What an object may be set aside in; getting through the same once more ends it."""

    OBSERVE = "observe"
    ACT = "act"
    RETAIN = "retain"
    MEASURE = "measure"
    REPORT = "report"
    WRITE = "write"
    TELL = "tell"


@dataclass(slots=True)
class _Aside:
    version: str
    failures: int
    until: float


class Guard:
    """Contains what is raised inside; `pause` is then how long to leave the object alone."""

    __slots__ = ("_containment", "_doing", "_subject", "pause")

    def __init__(self, containment: "Containment", one: Subject, doing: Doing) -> None:
        self._containment = containment
        self._subject = one
        self._doing = doing
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
            self._containment.passed(self._subject, self._doing)
            return False
        if not isinstance(error, Exception):
            return False
        self.pause = self._containment.failed(self._subject, self._doing, error)
        return True


class Containment:
    """Objects that are set aside; `counted` is called with the kind of each, once per version."""

    def __init__(self, clock: Callable[[], float], counted: Callable[[str], None]) -> None:
        self._clock = clock
        self._counted = counted
        self._asides: dict[tuple[Kind, str, str], dict[Doing, _Aside]] = {}
        self._traced = Repeats(clock)

    def guard(self, one: Subject, doing: Doing = Doing.OBSERVE) -> Guard:
        """Return what contains whatever is raised inside because of this object."""
        return Guard(self, one, doing)

    def failed(self, one: Subject, doing: Doing, error: Exception) -> float:
        """Set the object aside and return for how many seconds."""
        asides = self._asides.setdefault(one.key, {})
        before = asides.get(doing)
        is_news = before is None or before.version != one.version
        failures = 1 if before is None or is_news else before.failures + 1
        pause = min(FIRST_PAUSE * 2.0 ** min(failures - 1, 30), LONGEST_PAUSE)
        asides[doing] = _Aside(one.version, failures, self._clock() + pause)
        if is_news:
            self._say(one, doing, error)
            self._counted(one.kind.value)
        return pause

    def passed(self, one: Subject, doing: Doing) -> None:
        """Take that all went well with the object, in this version."""
        asides = self._asides.get(one.key) if self._asides else None
        if asides is None:
            return
        for other, aside in list(asides.items()):
            if _is_newer(one.version, aside.version) or (
                other is doing and not _is_newer(aside.version, one.version)
            ):
                del asides[other]
        if not asides:
            del self._asides[one.key]

    def rests(self, one: Subject) -> bool:
        """Return whether the object is set aside as it is and its pause is not over."""
        asides = self._asides.get(one.key, {}).values()
        return any(it.version == one.version and self._clock() < it.until for it in asides)

    def forget(self, kind: Kind, namespace: str, name: str) -> None:
        """Take that there is no such object any more."""
        self._asides.pop((kind, namespace, name), None)

    def retain(
        self, kind: Kind, namespace: str | None, present: Container[tuple[str, str]]
    ) -> None:
        """Forget those of a namespace, or of all, that are not among those present."""
        for key in self.names(kind, namespace):
            if key not in present:
                self.forget(kind, *key)

    def names(self, kind: Kind, namespace: str | None) -> set[tuple[str, str]]:
        """Return namespace and name of those set aside in a namespace, or in all."""
        return {
            (space, name)
            for one, space, name in self._asides
            if one is kind and namespace in (None, space)
        }

    def by_kind(self) -> Counter[str]:
        """Return how many objects are set aside."""
        return Counter(kind.value for kind, _, _ in self._asides)

    def _say(self, one: Subject, doing: Doing, error: Exception) -> None:
        """Say it with a traceback once a minute for one kind of failure: there may be many."""
        what = f"{type(error).__name__}: {error}"
        log.error(
            "object set aside",
            kind=one.kind.value,
            object=f"{one.namespace}/{one.name}",
            version=one.version,
            doing=doing.value,
            error=what[:500],
            exc_info=error if self._traced.allow(f"{one.kind} {doing} {type(error)}") else None,
        )


def _is_newer(version: str, than: str) -> bool:
    both = version.isdecimal() and than.isdecimal()
    return both and int(version) > int(than)
