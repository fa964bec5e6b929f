"""Adapters that carry watched pods, worker Leases and AsyncQueues into the cache.

Each store covers one namespace, or all; a list replaces what was known there, so that nothing
deleted while the watch was down stays behind.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import WatchEvent
from asyncjob.kube.informer import IncrementalEventHandler
from asyncjob.names import WORKER_LEASE_PREFIX
from asyncjob_operator.cache.queues import QueueCache
from asyncjob_operator.cache.workers import WorkerPodCache, WorkerRegistry
from asyncjob_operator.telemetry.quarantine import ObjectKind, ObjectRef, Quarantine, object_ref

ObjectName = tuple[str, str]


class CacheAdapter(Protocol):
    """Carries objects of one kind into a cache."""

    kind: ObjectKind

    def page_begins(self) -> None:
        """Handle that a page of a list is about to be stored, maybe after a break of the watch."""
        return

    def on_update(self, obj: JsonObject) -> None:
        """Store an object as it is now."""

    def on_delete(self, name: ObjectName, version: str) -> None:
        """Forget an object that was deleted at this version, or before."""

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the names of the known objects of one namespace, or of all."""


class InformerStore(IncrementalEventHandler):
    """The objects of one kind in one namespace, or in all; `synced` is set after the first list.

    An object whose storing raises is quarantined until it changes; what was known of it stays.
    """

    def __init__(
        self, adapter: CacheAdapter, namespace: str | None, quarantine: Quarantine
    ) -> None:
        self.synced = asyncio.Event()
        self._adapter = adapter
        self._quarantine = quarantine
        self._namespace = namespace
        self._before: set[ObjectName] = set()
        self._listed: set[ObjectName] = set()

    def list_begins(self) -> None:
        """Remember what is known now: only that can be found deleted by the list.

        An object that is first seen while the list is read may not be in it, and is kept.
        """
        self._before = set(self._adapter.names_in(self._namespace))
        self._before |= self._quarantine.quarantined_names(self._adapter.kind, self._namespace)
        self._listed = set()

    def page_begins(self) -> None:
        """Prepare for a page, whose objects may have changed long ago."""
        self._adapter.page_begins()

    def list_object(self, obj: JsonObject) -> None:
        """Store one object of the list."""
        self._listed.add(_object_name(obj))
        self._on_update(obj)

    def list_ends(self, version: str) -> None:
        """Forget the objects that are not in the list."""
        gone = self._before - self._listed
        self._before, self._listed = set(), set()
        for name in gone:
            self._on_delete(name, version)
        self.synced.set()

    def apply(self, event: WatchEvent) -> None:
        """Store one change from the watch."""
        if event.type == "DELETED":
            self._on_delete(_object_name(event.object), event.resource_version)
        else:
            self._on_update(event.object)

    def _on_update(self, obj: JsonObject) -> None:
        with self._quarantine.guard(object_ref(self._adapter.kind, obj)):
            self._adapter.on_update(obj)

    def _on_delete(self, name: ObjectName, version: str) -> None:
        with self._quarantine.guard(ObjectRef(self._adapter.kind, *name)):
            self._adapter.on_delete(name, version)
        self._quarantine.forget(self._adapter.kind, *name)


class PodCacheAdapter(CacheAdapter):
    """Carries worker pods into the cache."""

    kind = ObjectKind.POD

    def __init__(self, worker_pods: WorkerPodCache) -> None:
        self._worker_pods = worker_pods

    def page_begins(self) -> None:
        """Handle that pods are listed again."""
        self._worker_pods.on_pods_relisted()

    def on_update(self, obj: JsonObject) -> None:
        """Store a pod."""
        self._worker_pods.on_pod_update(obj)

    def on_delete(self, name: ObjectName, version: str) -> None:
        """Forget a deleted pod."""
        self._worker_pods.on_pod_delete(*name, version)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the names of the known pods."""
        return self._worker_pods.pods_in(namespace)


class WorkerLeaseCacheAdapter(CacheAdapter):
    """Carries worker Leases into the caches of pods and of workers."""

    kind = ObjectKind.LEASE

    def __init__(self, worker_pods: WorkerPodCache, worker_registry: WorkerRegistry) -> None:
        self._worker_pods = worker_pods
        self._worker_registry = worker_registry

    def on_update(self, obj: JsonObject) -> None:
        """Store a Lease."""
        self._worker_pods.on_lease_update(obj)
        self._worker_registry.on_lease_update(obj)

    def on_delete(self, name: ObjectName, version: str) -> None:
        """Forget a deleted Lease."""
        self._worker_pods.on_lease_delete(*name, version)
        self._worker_registry.on_lease_delete(*name, version)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the names of the known Leases."""
        return [
            (space, WORKER_LEASE_PREFIX + pod)
            for space, pod in self._worker_pods.leases_in(namespace)
        ]


class QueueCacheAdapter(CacheAdapter):
    """Carries AsyncQueues into the cache."""

    kind = ObjectKind.QUEUE

    def __init__(self, queues: QueueCache) -> None:
        self._queues = queues

    def on_update(self, obj: JsonObject) -> None:
        """Store a queue."""
        self._queues.on_update(obj)

    def on_delete(self, name: ObjectName, version: str) -> None:
        """Forget a deleted AsyncQueue."""
        self._queues.on_delete(*name, version)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the names of the known queues."""
        return self._queues.names_in(namespace)


def _object_name(obj: JsonObject) -> ObjectName:
    meta = child(obj, "metadata")
    return text(meta, "namespace"), text(meta, "name")
