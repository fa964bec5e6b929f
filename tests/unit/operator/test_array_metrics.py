"""What metrics say of arrays: of all that are known, while this operator leads."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.metrics import MetricSpec, arrays
from asyncjob_operator.controllers.array_evaluator import ArrayEvaluator
from asyncjob_operator.controllers.workqueue import DelayingQueue
from asyncjob_operator.core.now import Now
from asyncjob_operator.telemetry.array_metrics import ArrayMetrics, ArrayStats
from asyncjob_operator.telemetry.job_metrics import MAX_QUEUES
from support.parts.array_world import raw_array
from support.parts.evaluation import evaluation
from support.parts.vitals import quarantine

QUEUE = {"namespace": "ns", "queue": "q"}


def stats(queue: str = "q", phase: ArrayPhase = ArrayPhase.RUNNING, **more: Any) -> ArrayStats:
    values = {"open_chunks": 2, "items_left": 10, "idle_seconds": 0.0, **more}
    return ArrayStats("ns", queue, phase, **values)


class Shown:
    """A registry, and what there is to say."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = ArrayMetrics(self.registry)
        self.stats: list[ArrayStats] = []
        self.leads = True
        self.metrics.expose(lambda: self.stats if self.leads else None)

    def value(self, spec: MetricSpec, **labels: str) -> float | None:
        return self.registry.get_sample_value(spec.exposed_name, labels)


@pytest.fixture
def shown() -> Shown:
    return Shown()


def test_arrays_of_a_queue_are_added_up_and_the_longest_wait_is_shown(shown: Shown) -> None:
    shown.stats = [
        stats(idle_seconds=7.0),
        stats(items_left=5, idle_seconds=3.0),
        stats(phase=ArrayPhase.FAILED, items_left=0, open_chunks=0),
        stats("other"),
    ]
    assert shown.value(arrays.ARRAYS, **QUEUE, phase="Running") == 2
    assert shown.value(arrays.ARRAYS, **QUEUE, phase="Failed") == 1
    assert shown.value(arrays.ARRAYS, **QUEUE, phase="Succeeded") == 0
    assert shown.value(arrays.ITEMS_LEFT, **QUEUE) == 15
    assert shown.value(arrays.OPEN_CHUNKS, **QUEUE) == 4
    assert shown.value(arrays.IDLE_SECONDS, **QUEUE) == 7.0


def test_a_standby_says_nothing(shown: Shown) -> None:
    shown.stats, shown.leads = [stats()], False
    assert shown.value(arrays.ARRAYS, **QUEUE, phase="Running") is None


def test_items_are_counted_from_a_first_value_of_0(shown: Shown) -> None:
    shown.stats = [stats()]
    shown.value(arrays.ITEMS_LEFT, **QUEUE)
    assert shown.value(arrays.ITEMS, **QUEUE, outcome="failed") == 0
    shown.metrics.record_counted("ns", "q", succeeded=3, failed=1)
    assert shown.value(arrays.ITEMS, **QUEUE, outcome="succeeded") == 3
    assert shown.value(arrays.ITEMS, **QUEUE, outcome="failed") == 1


def test_the_number_of_queues_is_bounded(shown: Shown) -> None:
    shown.stats = [stats(f"q{number}") for number in range(MAX_QUEUES + 5)]
    other = {"namespace": "other", "queue": "other"}
    assert shown.value(arrays.ARRAYS, **other, phase="Running") == 5


class Watched:
    """An evaluator that is shown an array and its chunk."""

    def __init__(self) -> None:
        self.now, self.version = 100.0, 1
        caches = evaluation(self.moment).caches
        self.chunks, queue = caches.chunks, DelayingQueue()
        self.evaluator = ArrayEvaluator(
            "me",
            caches,
            self.moment,
            lambda _key: None,
            delaying_queue=queue,
            quarantine=quarantine(),
        )

    def moment(self) -> Now:
        return Now(self.now, self.now)

    def see(self, phase: str = "Running", **spec: Any) -> None:
        self.version += 1
        obj = raw_array(items={"count": 10}, **spec)
        obj["metadata"]["resourceVersion"] = str(self.version)
        obj["status"] = {"phase": phase, "total": 10, "next": 4, "succeeded": 3, "failedItems": "3"}
        self.evaluator.on_update(obj)

    def see_chunk(self, phase: str) -> None:
        self.chunks.on_update(
            {
                "metadata": {
                    "namespace": "ns",
                    "name": "chunk",
                    "uid": "uid-c",
                    "labels": {"asyncjob.dev/array-uid": "uid-a"},
                },
                "spec": {"payload": {"array": {"name": "thumbs"}}},
                "status": {"phase": phase},
            }
        )

    def look(self, *, paused: bool = False) -> ArrayStats:
        [found] = self.evaluator.stats(lambda _namespace, _queue: paused)
        return found


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_what_is_left_of_an_array_is_known(watched: Watched) -> None:
    watched.see()
    assert watched.look() == ArrayStats(
        "ns", "default", ArrayPhase.RUNNING, open_chunks=0, items_left=6, idle_seconds=0.0
    )


def test_an_array_is_idle_from_when_its_last_chunk_stopped_running(watched: Watched) -> None:
    watched.see()
    watched.now += 5
    assert watched.look().idle_seconds == 5
    watched.see_chunk("Queued")
    watched.now += 5
    assert watched.look().idle_seconds == 10
    watched.see_chunk("Running")
    watched.now += 5
    assert watched.look().idle_seconds == 0
    watched.see_chunk("Retrying")
    watched.now += 2
    assert watched.look().idle_seconds == 2


@pytest.mark.parametrize("held", [{"suspend": True}, {"cancel": True}])
def test_an_array_that_is_held_is_not_idle(watched: Watched, held: dict[str, Any]) -> None:
    watched.see()
    watched.see(**held)
    watched.now += 5
    assert watched.look().idle_seconds == 0


def test_an_array_in_a_paused_queue_is_not_idle(watched: Watched) -> None:
    watched.see()
    watched.now += 5
    assert watched.look(paused=True).idle_seconds == 0


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Cancelled"])
def test_an_array_that_has_ended_is_not_idle_and_has_nothing_left(
    watched: Watched, phase: str
) -> None:
    watched.see()
    watched.see(phase)
    watched.now += 5
    assert (watched.look().idle_seconds, watched.look().items_left) == (0, 0)
