"""What the caches know of an object, whatever order a watch and live reads tell of it in.

An object is changed, deleted and made again. Its watch tells of each change in order, at any time
later; a live read shows what there is when it is asked, and its answer takes any time. What a cache
knows has to be what there was at some time, at each look no earlier than at the look before, and in
the end what there is.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncjob.json_types import JsonObject
from asyncjob.names import WORKER_LEASE_PREFIX
from asyncjob_operator.cache.adapters import (
    PodCacheAdapter,
    QueueCacheAdapter,
    WorkerLeaseCacheAdapter,
)
from asyncjob_operator.cache.job_caches import JobCaches
from support.judging.planted_bugs import BugSearch
from support.objects.snapshots import POD, raw, roll_lease, stamp
from support.parts.audience import Audience

Known = object
"""What a cache knows of the object: its number, None if it knows of none."""


@dataclass(frozen=True)
class Resource:
    """How to make an object of a number, show it to a cache, and ask what that knows of it.

    `on_read` stores a live read; it is `on_update` where nothing else is said. `on_delete` gets the
    version at which the object was deleted.
    """

    make: Callable[[int], JsonObject]
    on_update: Callable[[Audience, JsonObject], object]
    on_delete: Callable[[Audience, str], object]
    known: Callable[[JobCaches], Known]
    on_read: Callable[[Audience, JsonObject], object] | None = None
    is_made_again: bool = True
    """Whether there may be another once it is deleted: the cache goes by the name."""


def _queue(number: int) -> JsonObject:
    return {"metadata": {"namespace": "ns", "name": "q"}, "spec": {"maxConcurrency": number}}


def _known_queue(caches: JobCaches) -> Known:
    there = ("ns", "q") in caches.queues
    return caches.queues.view("ns", "q").limits.max_concurrency if there else None


def _pod(number: int) -> JsonObject:
    ended: JsonObject = {"terminated": {"finishedAt": stamp(number), "exitCode": number}}
    worker: JsonObject = {"name": "worker", "state": {"running": {}}, "lastState": ended}
    meta: JsonObject = {"namespace": "ns", "name": POD, "uid": f"uid-{number}"}
    return {"metadata": meta, "status": {"phase": "Running", "containerStatuses": [worker]}}


def _known_pod(caches: JobCaches) -> Known:
    pod = caches.worker_pods._pods.get(("ns", POD))
    return pod and pod.termination and pod.termination.exit_code


def _lease(number: int) -> JsonObject:
    return roll_lease(POD, number, worker=f"worker-{number}", slots=number)


def _known_process(caches: JobCaches) -> Known:
    process = caches.worker_pods._newest_process.get(("ns", POD))
    return process and int(process.worker.removeprefix("worker-"))


def _known_slots(caches: JobCaches) -> Known:
    workers = caches.worker_registry._queues.get(("ns", "default"))
    return workers and workers.slots


def _known_job(caches: JobCaches) -> Known:
    job = caches.store.get("uid-job")
    return job and job.priority


def _pods(seen: Audience) -> PodCacheAdapter:
    return PodCacheAdapter(seen.caches.worker_pods)


def _leases(seen: Audience) -> WorkerLeaseCacheAdapter:
    return WorkerLeaseCacheAdapter(seen.caches.worker_pods, seen.caches.worker_registry)


def _queues(seen: Audience) -> QueueCacheAdapter:
    return QueueCacheAdapter(seen.caches.queues)


_LEASE: Final = Resource(
    _lease,
    on_update=lambda seen, obj: _leases(seen).on_update(obj),
    on_delete=lambda seen, at: _leases(seen).on_delete(("ns", WORKER_LEASE_PREFIX + POD), at),
    known=_known_process,
)

RESOURCES: Final = {
    "queue": Resource(
        _queue,
        on_update=lambda seen, obj: _queues(seen).on_update(obj),
        on_delete=lambda seen, at: _queues(seen).on_delete(("ns", "q"), at),
        known=_known_queue,
    ),
    "pod": Resource(
        _pod,
        on_update=lambda seen, obj: _pods(seen).on_update(obj),
        on_read=lambda seen, obj: seen.caches.worker_pods.on_pod_read(obj),
        on_delete=lambda seen, at: _pods(seen).on_delete(("ns", POD), at),
        known=_known_pod,
    ),
    "process of a worker's Lease": _LEASE,
    "slots of a worker's Lease": replace(_LEASE, known=_known_slots),
    "job": Resource(
        lambda number: raw("job", spec={"priority": number}),
        on_update=lambda seen, obj: seen.observer.on_update(obj, just_changed=True),
        on_delete=lambda seen, _: seen.observer.on_delete("uid-job"),
        known=_known_job,
        is_made_again=False,  # the cache goes by the UID
    ),
}


class Story:
    """An object's changes, and what of them a cache has been told."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._seen = Audience()
        self._there: JsonObject | None = None
        self._untold: list[JsonObject | str] = []
        """What the watch has not told yet: how the object was, or the version of its deletion."""

        self._answers: list[JsonObject] = []
        self._past: list[Known] = [None]
        self._place = 0

    @property
    def known(self) -> Known:
        """What the cache knows."""
        return self._resource.known(self._seen.caches)

    def change(self) -> None:
        """Change the object; make it if it is not there."""
        number = len(self._past)
        if self._there is None and number > 1 and not self._resource.is_made_again:
            return
        obj: Any = self._resource.make(number)
        obj["metadata"]["resourceVersion"] = str(1000 + number)
        self._there = obj
        self._past.append(number)
        self._untold.append(obj)

    def delete(self) -> None:
        """Delete the object, if it is there."""
        if self._there is None:
            return
        self._there = None
        self._untold.append(str(1000 + len(self._past)))
        self._past.append(None)

    def watch(self) -> None:
        """Have the watch tell of the next change."""
        if self._untold:
            told = self._untold.pop(0)
            if isinstance(told, str):
                self._resource.on_delete(self._seen, told)
            else:
                self._resource.on_update(self._seen, told)

    def ask(self) -> None:
        """Have a live read show what there is, if there is something; its answer is on its way."""
        if self._there is not None:
            self._answers.append(self._there)

    def answer(self, place: int) -> None:
        """Have one of the answers arrive."""
        if self._answers:
            read = self._resource.on_read or self._resource.on_update
            read(self._seen, self._answers.pop(place))

    def take(self, step: str) -> None:
        """Do one of `STEPS`."""
        match step:
            case "change":
                self.change()
            case "delete":
                self.delete()
            case "watch":
                self.watch()
            case "ask":
                self.ask()
            case "first answer":
                self.answer(0)
            case "last answer":
                self.answer(-1)

    def look(self) -> None:
        """Judge what the cache knows."""
        known = self.known
        if known != self._past[self._place]:
            later = self._past[self._place + 1 :]
            assert known in later, f"{known} is older than {self._past[self._place]}"
            self._place += 1 + later.index(known)

    def end(self) -> None:
        """Have everything arrive that is on its way, and judge what is known then."""
        while self._answers:
            self.answer(0)
            self.look()
        while self._untold:
            self.watch()
            self.look()
        assert self.known == self._past[-1]


STEPS: Final = st.lists(
    st.sampled_from(["change", "delete", "watch", "ask", "first answer", "last answer"]),
    min_size=6,
    max_size=24,
)


def play(name: str, steps: list[str]) -> None:
    """Take the steps, and judge after each."""
    story = Story(RESOURCES[name])
    for step in steps:
        story.take(step)
        story.look()
    story.end()


@pytest.mark.parametrize("name", RESOURCES)
@given(steps=STEPS)
def test_what_is_known_never_becomes_older_and_is_true_in_the_end(
    name: str, steps: list[str]
) -> None:
    play(name, steps)


@pytest.mark.parametrize(
    ("bug", "name"), [("stale pod view", "pod"), ("stale queue view", "queue")]
)
def test_the_search_finds_a_cache_that_takes_each_version_for_a_newer_one(
    bug: str, name: str, bug_search: BugSearch
) -> None:
    bug_search.finds(bug, STEPS, partial(play, name), broken="is older than")
