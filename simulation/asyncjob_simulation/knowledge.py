"""What processes know of the API server's objects: it may be late, and never becomes older.

Watches, lists, live reads and the answers to writes reach a process in any order. What it knows of
an object has to be what there was at some time, at each look no earlier than at the look before;
and once nothing changes any more, what there is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob.names import GROUP, QUEUES
from asyncjob_gateway.cache.namespace import NamespaceCache
from asyncjob_operator.cache.job_caches import JobCaches
from asyncjob_operator.core.liveness import read_pod
from asyncjob_operator.core.options import read_queue
from asyncjob_operator.core.queue_stats import shown_stats
from asyncjob_simulation.apiserver import ApiServer
from asyncjob_simulation.cluster import NAMESPACE

Object = dict[str, Any]
Problem = tuple[str, str]
"""The name of an object, and what is wrong."""


@dataclass(frozen=True)
class _Resource:
    """Objects that operators know, and what they know of one."""

    id: tuple[str, str]
    read: Callable[[Object], object]
    known: Callable[[JobCaches], Mapping[str, object]]


def _queues(caches: JobCaches) -> Mapping[str, object]:
    queues = caches.queues
    return {
        name: (queues.view(namespace, name), queues.status((namespace, name)))
        for namespace, name in queues.names_in(None)
    }


def _pods(caches: JobCaches) -> Mapping[str, object]:
    pods = caches.worker_pods._pods  # noqa: SLF001  # nobody else asks for all of them
    return {name: pod for (_, name), pod in pods.items()}


_RESOURCES: Final = (
    _Resource((GROUP, QUEUES), lambda obj: (read_queue(obj), shown_stats(obj)), _queues),
    _Resource(("", "pods"), read_pod, _pods),
)


@dataclass
class Knowledge:
    """Judges what operators and gateways know. Both are listed by the name of their process."""

    server: ApiServer
    operators: dict[str, JobCaches] = field(default_factory=dict)
    gateways: dict[str, NamespaceCache] = field(default_factory=dict)
    _history: dict[tuple[str, str], list[object]] = field(default_factory=dict)
    """What there was to be known of an object, one after the other, by resource and name."""

    _places: dict[str, int] = field(default_factory=dict)
    _known: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """The place in that history of what a process knew last, by process, resource and name."""

    def problems(self) -> Iterator[Problem]:
        """Yield what processes know that is older than what they knew before."""
        for resource in _RESOURCES:
            for process, caches in self.operators.items():
                yield from self._look(process, resource, resource.known(caches))

    def differences(self) -> Iterator[Problem]:
        """Yield what processes know that differs from what there is."""
        for resource in _RESOURCES:
            there = {
                name: resource.read(obj)
                for (_, name), obj in self.server.storage.collection(resource.id).objects.items()
                if _concerns(resource, obj)
            }
            for process, caches in self.operators.items():
                yield from _compare(process, there, resource.known(caches))
        for process, cache in self.gateways.items():
            yield from self._compare_counts(process, cache)

    def follow(self) -> None:
        """Take what has been stored since the last time."""
        for resource in _RESOURCES:
            self._follow(resource)

    def _follow(self, resource: _Resource) -> None:
        collection, plural = self.server.storage.collection(resource.id), resource.id[1]
        place = self._places.get(plural, 0)
        if place == collection.end:
            return
        self._places[plural] = collection.end
        for change in collection.changes_from(max(place, collection.dropped)):
            obj = change.new
            if not _concerns(resource, obj or change.old or {}):
                continue
            past = self._history.setdefault((plural, change.key[1]), [None])
            seen = resource.read(obj) if obj else None
            if past[-1] != seen:
                past.append(seen)

    def _look(
        self, process: str, resource: _Resource, known: Mapping[str, object]
    ) -> Iterator[Problem]:
        plural = resource.id[1]
        for (kind, name), past in self._history.items():
            if kind != plural:
                continue
            key, now = (process, plural, name), known.get(name)
            before = self._known.get(key, 0)
            if now == past[before]:
                continue
            place = _find(past, now, before)
            if place is None:
                yield name, f"{process} has forgotten what it knew of {plural} {name}: {now}"
            else:
                self._known[key] = place

    def _compare_counts(self, process: str, cache: NamespaceCache) -> Iterator[Problem]:
        objects = self.server.storage.collection((GROUP, QUEUES)).objects.values()
        for obj in objects:
            name, version = obj["metadata"]["name"], obj["metadata"]["resourceVersion"]
            known = (cache.queue_object(name) or {}).get("metadata", {})
            if isinstance(known, dict) and known.get("resourceVersion") != version:
                yield name, f"{process} knows version {known.get('resourceVersion')} of {version}"


def _concerns(resource: _Resource, obj: Object) -> bool:
    """Return whether an operator follows the object: of pods only those of workers."""
    meta = obj.get("metadata") or {}
    if meta.get("namespace") != NAMESPACE:
        return False
    return resource.id[1] != "pods" or meta["name"].startswith("worker-")


def _find(past: Sequence[object], wanted: object, begin: int) -> int | None:
    return next((n for n in range(begin, len(past)) if past[n] == wanted), None)


def _compare(
    process: str, there: Mapping[str, object], known: Mapping[str, object]
) -> Iterator[Problem]:
    for name in sorted({*there, *known}):
        if there.get(name) != known.get(name):
            yield name, f"{process} knows {known.get(name)}, and there is {there.get(name)}"
