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
    """Keeps objects of one kind."""

    kind: ObjectKind

    def on_update(self, obj: JsonObject) -> None:
        """Take an object as it is now."""

    def on_delete(self, name: ObjectName) -> None:
        """Take that there is no such object."""

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return what is known in a namespace, or everywhere."""


class InformerStore:
    """One namespace of one kind, or all of them; `synced` is set once it is completely known.

    `on_list` is called before each list is taken: until then nothing may have been seen for long.
    An object that cannot be taken is set aside until it changes; what was known of it stays.
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
        """Take the whole collection anew."""
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
        """Take one change."""
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
    """Worker pods."""

    kind = ObjectKind.POD

    def __init__(self, worker_pods: WorkerPodCache) -> None:
        self._worker_pods = worker_pods

    def on_update(self, obj: JsonObject) -> None:
        """Take a pod."""
        self._worker_pods.on_pod_update(obj)

    def on_delete(self, name: ObjectName) -> None:
        """Take that a pod is gone."""
        self._worker_pods.on_pod_delete(*name)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the known pods."""
        return self._worker_pods.pods_in(namespace)


class WorkerLeaseCacheAdapter:
    """Workers' announcements."""

    kind = ObjectKind.LEASE

    def __init__(self, worker_pods: WorkerPodCache, worker_registry: WorkerRegistry) -> None:
        self._worker_pods = worker_pods
        self._worker_registry = worker_registry

    def on_update(self, obj: JsonObject) -> None:
        """Take an announcement."""
        self._worker_pods.on_lease_update(obj)
        self._worker_registry.on_lease_update(obj)

    def on_delete(self, name: ObjectName) -> None:
        """Take that an announcement is gone."""
        self._worker_pods.on_lease_delete(*name)
        self._worker_registry.on_lease_delete(*name)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the known announcements."""
        return [
            (space, WORKER_LEASE_PREFIX + pod)
            for space, pod in self._worker_pods.leases_in(namespace)
        ]


class QueueCacheAdapter:
    """AsyncQueues."""

    kind = ObjectKind.QUEUE

    def __init__(self, queues: QueueCache) -> None:
        self._queues = queues

    def on_update(self, obj: JsonObject) -> None:
        """Take a queue."""
        self._queues.on_update(obj)

    def on_delete(self, name: ObjectName) -> None:
        """Take that a queue has no AsyncQueue any more."""
        self._queues.on_delete(*name)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the known queues."""
        return self._queues.names_in(namespace)


def _object_name(obj: JsonObject) -> ObjectName:
    meta = child(obj, "metadata")
    return text(meta, "namespace"), text(meta, "name")
