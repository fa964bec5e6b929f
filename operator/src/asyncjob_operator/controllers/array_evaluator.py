"""Evaluates an array when it or one of its chunks changes, and enqueues it if something is due.

Writes nothing. What only this operator knows of an array is kept here: what it has created, when it
made itself the writer, when it last wrote. Chunks whose array is not known are looked after as
well: it may be gone.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.arrays.observed import ChunkJob, ChunkOutcome
from asyncjob.lifecycle.arrays.phases import ENDED_ARRAY_PHASES
from asyncjob.lifecycle.arrays.state import ArrayView, read_array
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.cache.adapters import CacheAdapter, InformerStore, ObjectName
from asyncjob_operator.cache.chunks import ArrayKey, array_key
from asyncjob_operator.cache.job_caches import JobCaches
from asyncjob_operator.cache.jobs import KnownJob, is_newer
from asyncjob_operator.controllers.workqueue import DelayingQueue
from asyncjob_operator.core.arrays.decide import decide_array, decide_orphans
from asyncjob_operator.core.arrays.gates import (
    IdleCheck,
    check_start,
    check_workers,
    time_ahead,
)
from asyncjob_operator.core.arrays.progress import (
    REST_SECONDS,
    CountSample,
    add_sample,
    is_held,
)
from asyncjob_operator.core.arrays.snapshot import (
    ArrayDecision,
    ArraySnapshot,
)
from asyncjob_operator.core.dependencies import Dependencies, RelatedJob, related_job
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.policies.dead_letters import Missing
from asyncjob_operator.core.workers import AffectedTypes
from asyncjob_operator.telemetry.array_metrics import ArrayStats
from asyncjob_operator.telemetry.quarantine import ObjectKind, ObjectRef, Quarantine, object_ref


@dataclass(slots=True)
class ArrayMemory:
    """What this operator alone knows of an array; times are its own monotonic seconds."""

    writer: tuple[str, int]
    writer_since: float
    claimed_at: float | None = None
    written_at: float | None = None
    created: dict[str, str] = field(default_factory=dict)
    cancel_refused_until: float = 0.0
    """Until when it is not tried again to cancel the array with its parent."""

    idle_since: float | None = None
    """Since when none of its chunks has run although some might."""

    missing_since: float | None = None
    """Since when something that it depends on has not existed."""

    samples: list[CountSample] = field(default_factory=list)
    """How many of its items had been run when, for its rate."""


class ArrayEvaluator:
    """Caches arrays and evaluates them; `enqueue` is called with each that has something due."""

    def __init__(
        self,
        identity: str,
        caches: JobCaches,
        now: Callable[[], Now],
        enqueue: Callable[[ArrayKey], None],
        *,
        delaying_queue: DelayingQueue,
        quarantine: Quarantine,
        missing_timeout: float = 0.0,
    ) -> None:
        self._identity = identity
        self._jobs = caches.store
        self._chunks = caches.chunks
        self._chunks.add_listener(self.evaluate)
        self._child_arrays = caches.child_arrays
        self._child_arrays.add_cancel_listener(self.evaluate)
        self._worker_registry = caches.worker_registry
        self._worker_registry.add_listener(self._on_types_change)
        self._dependency_graph = caches.dependency_graph
        self._missing_timeout = missing_timeout
        self._now = now
        self._enqueue = enqueue
        self._delaying_queue = delaying_queue
        self._quarantine = quarantine
        self._views: dict[ArrayKey, ArrayView] = {}
        self._keys: dict[ObjectName, ArrayKey] = {}
        self._memory: dict[ArrayKey, ArrayMemory] = {}

    def on_update(self, obj: JsonObject) -> None:
        """Store and evaluate an array, unless a newer version is known, or that it is deleted."""
        meta, arrays = child(obj, "metadata"), self._child_arrays
        arrays.on_update(obj)
        if arrays.is_deleted(text(meta, "uid")) or arrays.has_ended(text(meta, "uid")) is None:
            return  # late news: it is gone, or another has its name
        key = array_key(text(meta, "namespace"), text(meta, "uid"))
        known = self._views.get(key)
        if known and not is_newer(text(meta, "resourceVersion"), known.resource_version):
            return
        with self._quarantine.guard(object_ref(ObjectKind.ARRAY, obj)) as guard:
            self._store(key, read_array(obj))
            self._evaluate(key)
        self._requeue_if_quarantined(key, guard.pause)

    def on_delete(self, name: ObjectName, version: str = "") -> None:
        """Forget an array that was deleted at this version; a newer one of its name is kept."""
        key = self._keys.get(name)
        known = self._views.get(key) if key else None
        if known and version and is_newer(known.resource_version, version):
            return
        uid = key.partition("/")[2] if key else ""
        self._child_arrays.on_delete(name, version, uid)
        self._quarantine.forget(ObjectKind.ARRAY, *name)
        if key is not None:
            self._forget(name, key)

    def on_gone(self, array: ArrayView) -> None:
        """Forget this very array: a read or a write has found it gone."""
        name, key = (array.namespace, array.name), array_key(array.namespace, array.uid)
        self._child_arrays.on_delete(name, uid=array.uid)
        if self._keys.get(name) == key:
            self._quarantine.forget(ObjectKind.ARRAY, *name)
            self._forget(name, key)

    def _forget(self, name: ObjectName, key: ArrayKey) -> None:
        del self._keys[name]
        self._views.pop(key, None)
        self._memory.pop(key, None)
        self._delaying_queue.forget(key)
        self._dependency_graph.on_array_delete(key.partition("/")[2])
        self.evaluate(key)

    def on_listed(self, namespace: str | None) -> None:
        """Note that all arrays of a namespace, or of all, have been listed."""
        self._child_arrays.on_listed(namespace)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the names of the known arrays of one namespace, or of all."""
        return [name for name in self._keys if namespace in (None, name[0])]

    def locate(self, key: ArrayKey) -> ArrayView | None:
        """Return the known view of an array, None if it is unknown."""
        return self._views.get(key)

    def stats(self, is_paused: Callable[[str, str], bool]) -> Iterator[ArrayStats]:
        """Yield what metrics say of each array; `is_paused` is asked of its queue."""
        now = self._now().monotonic
        for key, view in self._views.items():
            state, memory = view.state, self._memory.get(key)
            idle_since = memory.idle_since if memory else None
            if idle_since is None or is_paused(view.namespace, view.queue):
                idle_since = now
            ended = state.phase in ENDED_ARRAY_PHASES
            yield ArrayStats(
                view.namespace,
                view.queue,
                state.phase,
                open_chunks=len(state.open),
                items_left=0 if ended else view.total - state.succeeded - state.failed,
                idle_seconds=now - idle_since,
            )

    def evaluate(self, key: ArrayKey) -> None:
        """Evaluate an array, or the chunks of one that is not known."""
        array = self._views.get(key)
        if array is None:
            if decide_orphans(self._chunks.chunks_of(key)) and not self._is_blocked(key):
                self._enqueue(key)
            return
        ref = ObjectRef(ObjectKind.ARRAY, array.namespace, array.name, array.resource_version)
        with self._quarantine.guard(ref) as guard:
            self._evaluate(key)
        self._requeue_if_quarantined(key, guard.pause)

    def _evaluate(self, key: ArrayKey) -> None:
        self._note_idle(key)
        decision = self.decide(self._views[key], {}, "")
        if decision.effect is None:
            self._delaying_queue.requeue_at(key, decision.requeue_at)
        elif not self._is_blocked(key):
            self._delaying_queue.forget(key)
            self._enqueue(key)

    def _note_idle(self, key: ArrayKey) -> None:
        array, now = self._views[key], self._now()
        held = is_held(array) or (array.gated and not array.state.has_started)
        chunks = self._chunks.chunks_of(key).values()
        memory = self._remember(array, now)
        if held or any(chunk.phase is Phase.RUNNING for chunk in chunks):
            since, memory.idle_since = memory.idle_since, None
            if since is not None and now.monotonic - since >= REST_SECONDS:
                memory.samples = add_sample([], array, now.monotonic)
        elif memory.idle_since is None:
            memory.idle_since = now.monotonic

    def _on_types_change(self, queue: tuple[str, str], _types: AffectedTypes) -> None:
        """Evaluate the arrays of a queue whose workers take other types than before."""
        for key, array in list(self._views.items()):
            if (array.namespace, array.queue) == queue and not is_held(array):
                self.evaluate(key)

    def _check_workers(self, memory: ArrayMemory, array: ArrayView, now: Now) -> IdleCheck:
        """Return why no worker takes the chunks of an array, if none can."""
        queue, workers = (array.namespace, array.queue), self._worker_registry
        return check_workers(
            array,
            memory.idle_since,
            workers.unserved(*queue, array.next_type),
            None if workers.slots(*queue) is None else workers.workers(*queue),
            now.monotonic,
        )

    def _is_blocked(self, key: ArrayKey) -> bool:
        return self._delaying_queue.is_blocked(key, self._now().monotonic)

    def decide(
        self, array: ArrayView, outcomes: Mapping[str, ChunkOutcome | None], oversize: str
    ) -> ArrayDecision:
        """Return what is due for an array as it is here."""
        now = self._now()
        memory = self._remember(array, now)
        parent = self.parent_of(array)
        dependencies = self._dependency_graph.dependencies_of_array(array)
        start = check_start(array, dependencies, self._missing(memory, array, dependencies), now)
        idle = self._check_workers(memory, array, now)
        source = _cancel_source(parent, dependencies)
        may_cancel = now.monotonic >= memory.cancel_refused_until
        snapshot = ArraySnapshot(
            array=array,
            gate=start.gate,
            recheck_at=idle.recheck_at if start.gate is None else start.recheck_at,
            no_worker=idle.message,
            samples=memory.samples,
            start_precondition=start.precondition,
            has_open_parent=parent is not None and not parent.finished,
            is_needed=self._dependency_graph.is_array_needed(array),
            cancelled_with=source if may_cancel else None,
            chunks=self._chunks.chunks_of(array_key(array.namespace, array.uid)),
            identity=self._identity,
            writer_since=memory.writer_since,
            claimed_at=memory.claimed_at,
            written_at=memory.written_at,
            created=memory.created,
            outcomes=outcomes,
            oversize=oversize,
        )
        decision = decide_array(snapshot, now)
        if source is None or array.cancel or may_cancel or array.state.phase in ENDED_ARRAY_PHASES:
            return decision
        at = min(decision.requeue_at or math.inf, memory.cancel_refused_until)
        return replace(decision, requeue_at=at)

    def _missing(
        self, memory: ArrayMemory, array: ArrayView, dependencies: Dependencies
    ) -> Missing:
        """Return since when something has not existed that the array waits for."""
        now = self._now()
        if not dependencies.missing or array.suspend or time_ahead(array, now):
            memory.missing_since = None
        elif memory.missing_since is None:
            memory.missing_since = now.monotonic
        return Missing(memory.missing_since, self._missing_timeout)

    def parent_of(self, array: ArrayView) -> KnownJob | None:
        """Return the known job that has submitted an array."""
        parent = self._jobs.find(array.parent_uid) if array.parent_uid else None
        return parent if parent and parent.namespace == array.namespace else None

    def chunks_of(self, key: ArrayKey) -> Mapping[str, ChunkJob]:
        """Return the known chunks of an array."""
        return self._chunks.chunks_of(key)

    def memory_of(self, array: ArrayView) -> ArrayMemory:
        """Return what this operator alone knows of an array."""
        return self._remember(array, self._now())

    def requeue_after(self, key: ArrayKey, seconds: float) -> None:
        """Leave the array alone for this many seconds, even if it changes."""
        self._delaying_queue.block_until(key, self._now().monotonic + seconds)

    def _requeue_if_quarantined(self, key: ArrayKey, seconds: float | None) -> None:
        if seconds is not None:
            self.requeue_after(key, seconds)

    def _store(self, key: ArrayKey, array: ArrayView) -> None:
        name = (array.namespace, array.name)
        previous = self._keys.get(name)
        if previous is not None and previous != key:
            self._forget(name, previous)
        self._keys[name] = key
        self._views[key] = array
        self._dependency_graph.on_array_update(array)
        now = self._now()
        memory = self._remember(array, now)
        memory.samples = add_sample(memory.samples, array, now.monotonic)
        reserved = {entry.name for entry in array.state.open if not entry.uid}
        memory.created = {name: uid for name, uid in memory.created.items() if name in reserved}

    def _remember(self, array: ArrayView, now: Now) -> ArrayMemory:
        """Return the memory of an array, in which another writer is noted when it is first seen."""
        key = array_key(array.namespace, array.uid)
        writer = (array.state.writer, array.state.claims)
        memory = self._memory.get(key)
        if memory is None:
            memory = self._memory[key] = ArrayMemory(writer, now.monotonic)
        elif memory.writer != writer:
            memory.writer, memory.writer_since = writer, now.monotonic
        return memory


def _cancel_source(parent: KnownJob | None, dependencies: Dependencies) -> RelatedJob | None:
    """Return the job with which an array is to be cancelled, or None."""
    if parent is not None and parent.cascades_cancel:
        return related_job(parent)
    return dependencies.cascading_job


class ArrayCacheAdapter(CacheAdapter):
    """AsyncArrays."""

    kind = ObjectKind.ARRAY

    def __init__(self, evaluator: ArrayEvaluator) -> None:
        self._evaluator = evaluator

    def on_update(self, obj: JsonObject) -> None:
        """Store an array."""
        self._evaluator.on_update(obj)

    def on_delete(self, name: ObjectName, version: str) -> None:
        """Forget a deleted array."""
        self._evaluator.on_delete(name, version)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the names of the known arrays."""
        return self._evaluator.names_in(namespace)


class ArrayStore(InformerStore):
    """The arrays of one namespace, or of all."""

    def __init__(
        self, evaluator: ArrayEvaluator, namespace: str | None, quarantine: Quarantine
    ) -> None:
        super().__init__(ArrayCacheAdapter(evaluator), namespace, quarantine)
        self._evaluator = evaluator

    def list_ends(self, version: str) -> None:
        """Forget the arrays that are not in the list; it is known then which do not exist."""
        super().list_ends(version)
        self._evaluator.on_listed(self._namespace)

    def _on_update(self, obj: JsonObject) -> None:
        """Store an array; the evaluator itself quarantines one whose storing raises."""
        self._adapter.on_update(obj)
