"""Adapters that carry watched pods, worker Leases and AsyncQueues into the cache.

Each store covers one namespace, or all; a list replaces what was known there, so that nothing
deleted while the watch was down stays behind.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import WatchEvent
from asyncjob.names import WORKER_LEASE_PREFIX
from asyncjob_operator.cache.queues import QueueCache
from asyncjob_operator.cache.workers import WorkerPodCache, WorkerRegistry
from asyncjob_operator.telemetry.containment import Containment, ObjectKind, ObjectRef, object_ref

ObjectName = tuple[str, str]


class CacheAdapter(Protocol):
    """Carries objects of one kind into a cache."""

    kind: ObjectKind

    def on_update(self, obj: JsonObject) -> None:
        """Store an object as it is now."""

    def on_delete(self, name: ObjectName) -> None:
        """Forget a deleted object."""

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the names of the known objects of one namespace, or of all."""


class InformerStore:
    """The objects of one kind in one namespace, or in all; `synced` is set after the first list.

    `on_list` is called before each list is stored, which may follow a long break of the watch. An
    object whose storing raises is set aside until it changes; what was known of it stays.
    """

    def __init__(
        self,
        adapter: CacheAdapter,
        namespace: str | None,
        containment: Containment,
        on_list: Callable[[], None] = lambda: None,
    ) -> None:
        self.synced = asyncio.Event()
        self._adapter = adapter
        self._containment = containment
        self._namespace = namespace
        self._on_list = on_list

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Replace everything that is known by the objects of a list."""
        self._on_list()
        present = {_object_name(obj) for obj in objects}
        for name in self._adapter.names_in(self._namespace):
            if name not in present:
                self._on_delete(name)
        self._containment.retain(self._adapter.kind, self._namespace, present)
        for obj in objects:
            self._on_update(obj)
        self.synced.set()

    def apply(self, event: WatchEvent) -> None:
        """Store one change from the watch."""
        if event.type == "DELETED":
            self._on_delete(_object_name(event.object))
        else:
            self._on_update(event.object)

    def _on_update(self, obj: JsonObject) -> None:
        with self._containment.guard(object_ref(self._adapter.kind, obj)):
            self._adapter.on_update(obj)

    def _on_delete(self, name: ObjectName) -> None:
        with self._containment.guard(ObjectRef(self._adapter.kind, *name)):
            self._adapter.on_delete(name)
        self._containment.forget(self._adapter.kind, *name)


class PodCacheAdapter:
    """Carries worker pods into the cache."""

    kind = ObjectKind.POD

    def __init__(self, worker_pods: WorkerPodCache) -> None:
        self._worker_pods = worker_pods

    def on_update(self, obj: JsonObject) -> None:
        """Store a pod."""
        self._worker_pods.on_pod_update(obj)

    def on_delete(self, name: ObjectName) -> None:
        """Forget a deleted pod."""
        self._worker_pods.on_pod_delete(*name)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the names of the known pods."""
        return self._worker_pods.pods_in(namespace)


class WorkerLeaseCacheAdapter:
    """Carries worker Leases into the caches of pods and of workers."""

    kind = ObjectKind.LEASE

    def __init__(self, worker_pods: WorkerPodCache, worker_registry: WorkerRegistry) -> None:
        self._worker_pods = worker_pods
        self._worker_registry = worker_registry

    def on_update(self, obj: JsonObject) -> None:
        """Store a Lease."""
        self._worker_pods.on_lease_update(obj)
        self._worker_registry.on_lease_update(obj)

    def on_delete(self, name: ObjectName) -> None:
        """Forget a deleted Lease."""
        self._worker_pods.on_lease_delete(*name)
        self._worker_registry.on_lease_delete(*name)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the names of the known Leases."""
        return [
            (space, WORKER_LEASE_PREFIX + pod)
            for space, pod in self._worker_pods.leases_in(namespace)
        ]


class QueueCacheAdapter:
    """Carries AsyncQueues into the cache."""

    kind = ObjectKind.QUEUE

    def __init__(self, queues: QueueCache) -> None:
        self._queues = queues

    def on_update(self, obj: JsonObject) -> None:
        """Store a queue."""
        self._queues.on_update(obj)

    def on_delete(self, name: ObjectName) -> None:
        """Forget a deleted AsyncQueue."""
        self._queues.on_delete(*name)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the names of the known queues."""
        return self._queues.names_in(namespace)


def _object_name(obj: JsonObject) -> ObjectName:
    meta = child(obj, "metadata")
    return text(meta, "namespace"), text(meta, "name")
