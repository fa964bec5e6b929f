"""Takes watched pods, worker Leases and AsyncQueues to where they are kept.

Each follower keeps one namespace, or all; a list replaces what was known there, so that nothing
deleted while the watch was down stays behind.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import WatchEvent
from asyncjob.names import WORKER_LEASE_PREFIX
from asyncjob_operator.observe.queues import Queues
from asyncjob_operator.observe.roll_calls import RollCalls
from asyncjob_operator.observe.workers import Workers
from asyncjob_operator.telemetry.containment import Containment, Kind, Subject, subject

Name = tuple[str, str]


class Keeper(Protocol):
    """Keeps objects of one kind."""

    kind: Kind

    def saw(self, obj: JsonObject) -> None:
        """Take an object as it is now."""

    def lost(self, name: Name) -> None:
        """Take that there is no such object."""

    def known(self, namespace: str | None) -> Sequence[Name]:
        """Return what is known in a namespace, or everywhere."""


class Scope:
    """One namespace of one kind, or all of them; `listed` is set once it is completely known.

    `on_list` is called before each list is taken: until then nothing may have been seen for long.
    An object that cannot be taken is set aside until it changes; what was known of it stays.
    """

    def __init__(
        self,
        keeper: Keeper,
        namespace: str | None,
        containment: Containment,
        on_list: Callable[[], None] = lambda: None,
    ) -> None:
        self.listed = asyncio.Event()
        self._keeper = keeper
        self._containment = containment
        self._namespace = namespace
        self._on_list = on_list

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Take the whole collection anew."""
        self._on_list()
        present = {_name(obj) for obj in objects}
        for name in self._keeper.known(self._namespace):
            if name not in present:
                self._lost(name)
        self._containment.retain(self._keeper.kind, self._namespace, present)
        for obj in objects:
            self._saw(obj)
        self.listed.set()

    def apply(self, event: WatchEvent) -> None:
        """Take one change."""
        if event.type == "DELETED":
            self._lost(_name(event.object))
        else:
            self._saw(event.object)

    def _saw(self, obj: JsonObject) -> None:
        with self._containment.guard(subject(self._keeper.kind, obj)):
            self._keeper.saw(obj)

    def _lost(self, name: Name) -> None:
        with self._containment.guard(Subject(self._keeper.kind, *name)):
            self._keeper.lost(name)
        self._containment.forget(self._keeper.kind, *name)


class PodKeeper:
    """Worker pods."""

    kind = Kind.POD

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def saw(self, obj: JsonObject) -> None:
        """Take a pod."""
        self._workers.saw_pod(obj)

    def lost(self, name: Name) -> None:
        """Take that a pod is gone."""
        self._workers.lost_pod(*name)

    def known(self, namespace: str | None) -> Sequence[Name]:
        """Return the known pods."""
        return self._workers.pods_in(namespace)


class LeaseKeeper:
    """Workers' announcements."""

    kind = Kind.LEASE

    def __init__(self, workers: Workers, roll_calls: RollCalls) -> None:
        self._workers = workers
        self._roll_calls = roll_calls

    def saw(self, obj: JsonObject) -> None:
        """Take an announcement."""
        self._workers.saw_lease(obj)
        self._roll_calls.saw_lease(obj)

    def lost(self, name: Name) -> None:
        """Take that an announcement is gone."""
        self._workers.lost_lease(*name)
        self._roll_calls.lost_lease(*name)

    def known(self, namespace: str | None) -> Sequence[Name]:
        """Return the known announcements."""
        return [
            (space, WORKER_LEASE_PREFIX + pod) for space, pod in self._workers.leases_in(namespace)
        ]


class QueueKeeper:
    """AsyncQueues."""

    kind = Kind.QUEUE

    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    def saw(self, obj: JsonObject) -> None:
        """Take a queue."""
        self._queues.saw(obj)

    def lost(self, name: Name) -> None:
        """Take that a queue has no AsyncQueue any more."""
        self._queues.lost(*name)

    def known(self, namespace: str | None) -> Sequence[Name]:
        """Return the known queues."""
        return self._queues.names_in(namespace)


def _name(obj: JsonObject) -> Name:
    meta = child(obj, "metadata")
    return text(meta, "namespace"), text(meta, "name")
