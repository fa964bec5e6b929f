"""An array whose chunks no worker can take says so, after a while, until one can."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.arrays.item_index import ItemIndex
from asyncjob.lifecycle.arrays.phases import ArrayReason
from asyncjob.lifecycle.arrays.state import read_array
from asyncjob_operator.controllers.array_evaluator import ArrayEvaluator
from asyncjob_operator.controllers.workqueue import DelayingQueue
from asyncjob_operator.core.arrays.decide import next_state
from asyncjob_operator.core.arrays.gates import IdleCheck, check_workers
from asyncjob_operator.core.arrays.progress import CountSample
from asyncjob_operator.core.arrays.snapshot import WriteArrayStatus
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.workers import UnservedType
from support.objects.arrays import RUNNING, chunk, entry, snapshot, stored, under_way
from support.objects.snapshots import at, roll_lease
from support.parts.evaluation import evaluation
from support.parts.vitals import quarantine

UNSERVED = UnservedType(since=0.0, live_workers=2, listed_types=("a", "b"))
NO_HANDLER = (
    "no live worker of queue default has an item handler for thumb; 2 live workers list a, b"
)
GOING = under_way(entry(1))
TOLD = replace(GOING, reason=ArrayReason.NO_WORKER, message="as it was")


def checked(
    idle: float | None = 0.0,
    unserved: UnservedType | None = UNSERVED,
    workers: int | None = 2,
    *,
    now: float = 30.0,
    told: bool = False,
    **spec: Any,
) -> IdleCheck:
    array = read_array(stored(TOLD if told else GOING, **spec))
    return check_workers(array, idle, unserved, workers, now)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (checked(), IdleCheck(NO_HANDLER)),
        (checked(now=29), IdleCheck(recheck_at=30.0)),
        (checked(idle=10, now=30), IdleCheck(recheck_at=40.0)),
        (checked(unserved=replace(UNSERVED, since=20)), IdleCheck(recheck_at=50.0)),
        (checked(idle=None, now=99), IdleCheck()),
        (checked(unserved=None, now=99), IdleCheck()),
        (checked(unserved=None, workers=None, now=99), IdleCheck()),
        (checked(unserved=None, workers=0), IdleCheck("queue default has no worker")),
        (checked(unserved=None, told=True, now=20), IdleCheck("as it was", 30.0)),
        (checked(unserved=None, told=True, now=30), IdleCheck()),
        (
            checked(unserved=replace(UNSERVED, since=20), told=True),
            IdleCheck("as it was", 50.0),
        ),
    ],
    ids=[
        "no item handler",
        "not yet",
        "idle for a shorter time",
        "unserved for a shorter time",
        "a chunk runs",
        "all are busy",
        "workers are not known",
        "no worker",
        "taken over",
        "a worker has come",
        "another worker has gone",
    ],
)
def test_what_is_told_of_an_array_that_nobody_takes(found: IdleCheck, expected: IdleCheck) -> None:
    assert found == expected


def test_a_plain_handler_of_the_type_is_told_of_as_such() -> None:
    found = checked(unserved=replace(UNSERVED, listed_types=("a", "thumb")))
    assert found.message.endswith("one has a plain handler of the name, not an @app.item_handler")


def test_handlers_that_store_no_results_are_not_enough_for_an_array_that_keeps_them() -> None:
    found = checked(results={"uri": "s3://bucket/results/ns"})
    assert "has an item handler for thumb that stores results; 2 live" in found.message


def test_the_type_asked_for_is_that_of_the_next_job() -> None:
    file = {"items": {"count": None, "from": {"uri": "s3://bucket/a.csv"}}}
    without = read_array(stored(RUNNING, **file))
    indexed = replace(RUNNING, index=ItemIndex(25, 250, "v1", 1000, (0,)))
    assert without.next_type == "thumb/index"
    assert read_array(stored(indexed, **file)).next_type == "thumb/items"
    stores = read_array(stored(RUNNING, results={"uri": "s3://bucket/results/ns"}))
    assert stores.next_type == "thumb/store"


def test_the_reason_comes_and_goes_with_what_it_tells() -> None:
    told = next_state(snapshot(GOING, chunk(1), no_worker="nobody"), at(5))
    assert (told.reason, told.message) == (ArrayReason.NO_WORKER, "nobody")
    gone = next_state(snapshot(told, chunk(1)), at(6))
    assert (gone.reason, gone.message) == (None, "")


def test_why_it_will_fail_is_not_forgotten() -> None:
    failing = replace(GOING, reason=ArrayReason.RESULTS_NOT_STORED, message="no bucket")
    state = next_state(snapshot(failing, chunk(1), no_worker="nobody"), at(5))
    assert (state.reason, state.message) == (ArrayReason.RESULTS_NOT_STORED, "no bucket")


class Watched:
    """An evaluator with an array whose chunk waits, beside a worker that renews its Lease."""

    def __init__(self) -> None:
        self.now = 100.0
        self.caches = evaluation(self.moment).caches
        self.caches.worker_registry.mark_leases_watched()
        self.wanted: list[str] = []
        self.delayed = DelayingQueue()
        self.evaluator = ArrayEvaluator(
            "operator-0",
            self.caches,
            self.moment,
            self.wanted.append,
            delaying_queue=self.delayed,
            quarantine=quarantine(),
        )
        self.array = stored(GOING, parallelism=1)
        self.see_chunk("Queued")
        self.evaluator.on_update(self.array)
        self.wanted.clear()  # the chunk was seen before its array

    def moment(self) -> Now:
        return Now(self.now, self.now)

    def roll(self, *types: str) -> None:
        self.caches.worker_registry.on_lease_update(
            roll_lease("w", int(self.now), types=list(types))
        )

    def pass_time(self, *types: str) -> None:
        """Let 31 s pass, in which a worker with these types renews its Lease, if there are any."""
        for _ in range(3):
            if types:
                self.roll(*types)
            self.now += 10.4
        if types:
            self.roll(*types)

    def see_chunk(self, phase: str) -> None:
        meta = self.array["metadata"]
        self.caches.chunks.on_update(
            {
                "metadata": {
                    "namespace": "ns",
                    "name": "thumbs-1",
                    "uid": "uid-1",
                    "labels": {"asyncjob.dev/array-uid": meta["uid"]},
                },
                "spec": {"payload": {"array": {"name": "thumbs"}}},
                "status": {"phase": phase},
            }
        )

    @property
    def said(self) -> tuple[ArrayReason | None, str]:
        """Return what the status says once what is due is written."""
        array = read_array(self.array)
        effect = self.evaluator.decide(array, {}, "").effect
        state = effect.state if isinstance(effect, WriteArrayStatus) else array.state
        return state.reason, state.message

    def due(self) -> bool:
        """Return whether the array is to be looked at, because of time or something else."""
        keys = self.delayed.pop_due(self.now, 10)
        return bool(keys) or bool(self.wanted)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_queue_without_a_worker_is_told_of_after_half_a_minute(watched: Watched) -> None:
    assert (watched.said, watched.due()) == ((None, ""), False)
    watched.pass_time()
    assert watched.due()
    assert watched.said == (ArrayReason.NO_WORKER, "queue default has no worker")


def test_workers_without_the_item_handler_are_told_of_with_what_they_list(
    watched: Watched,
) -> None:
    watched.pass_time("thumb", "resize/items")
    watched.pass_time("thumb", "resize/items")
    assert watched.said == (
        ArrayReason.NO_WORKER,
        "no live worker of queue default has an item handler for thumb; one has a plain handler of "
        "the name, not an @app.item_handler",
    )


def test_how_long_nothing_ran_is_no_part_of_the_rate(watched: Watched) -> None:
    [key] = watched.evaluator._views
    memory = watched.evaluator.memory_of(read_array(watched.array))
    assert memory.samples == [CountSample(100.0, 0)]
    watched.now += 5
    watched.see_chunk("Running")
    assert memory.samples == [CountSample(watched.now, 0)]
    watched.see_chunk("Queued")
    watched.now += 4
    watched.see_chunk("Running")
    assert memory.samples == [CountSample(watched.now - 4, 0)], key


def test_beside_the_reason_there_is_no_rate(watched: Watched) -> None:
    state = replace(GOING, items_per_minute=7, expected_end_time="2026-01-01T00:00:00Z")
    told = next_state(snapshot(state, chunk(1), no_worker="nobody"), at(5))
    assert (told.items_per_minute, told.expected_end_time) == (None, None)
    assert watched.said == (None, "")


def test_nothing_is_told_while_a_worker_with_the_item_handler_is_busy(watched: Watched) -> None:
    watched.pass_time("thumb/items")
    watched.pass_time("thumb/items")
    assert watched.said == (None, "")


def test_a_worker_that_comes_takes_the_reason_away(watched: Watched) -> None:
    watched.pass_time()
    watched.array = stored(TOLD, parallelism=1)
    watched.evaluator.on_update({**watched.array, "metadata": newer(watched.array)})
    watched.wanted.clear()
    watched.roll("thumb/items")
    assert watched.wanted != []
    assert watched.said == (None, "")


def test_a_chunk_that_runs_takes_the_reason_away(watched: Watched) -> None:
    watched.pass_time()
    watched.array = stored(TOLD, parallelism=1)
    watched.see_chunk("Running")
    assert watched.said == (None, "")


def newer(array: Any) -> dict[str, Any]:
    """Return the metadata of the next version."""
    meta = array["metadata"]
    return {**meta, "resourceVersion": str(int(meta["resourceVersion"]) + 1)}
