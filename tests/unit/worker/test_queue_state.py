"""What a worker sees of its queue, of its fellows and of cancellations."""

from typing import Any

from asyncjob.app.context import Stop
from asyncjob.kube import WatchEvent
from asyncjob.worker_lease import read_worker_lease
from asyncjob_worker.claiming.queue_state import LiveWorkers, QueueState
from asyncjob_worker.execution.runner import CancelWatcher
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.registration import WorkerLease
from support.parts.callbacks import ignore
from support.parts.worker_parts import ME, held

INTERVAL = 15.0


def claims(obj: Any) -> str:
    """Return the identity of the worker that a Lease registers; empty if it claims no jobs."""
    return read_worker_lease(obj).claiming_worker


def lease(pod: str, worker: str, renewed: str = "t0", **changes: Any) -> dict[str, Any]:
    spec = {"holderIdentity": worker, "renewTime": renewed}
    return {"metadata": {"name": f"asyncjob-worker-{pod}", **changes}, "spec": spec}


def event(kind: str, obj: dict[str, Any]) -> WatchEvent:
    return WatchEvent(kind, obj)


class Seen:
    """A live_workers with a clock, and how often it called."""

    def __init__(self) -> None:
        self.now = 0.0
        self.changes = 0
        self.live_workers = LiveWorkers(ME, INTERVAL, lambda: self.now, self.change)

    def change(self) -> None:
        self.changes += 1


def test_the_live_workers_are_those_registered_and_oneself() -> None:
    seen = Seen()
    seen.live_workers.replace([lease("a", "a/1"), lease("b", "b/1")])
    assert seen.live_workers.live == {"a/1", "b/1", ME.worker}
    assert seen.live_workers.synced


def test_a_worker_that_is_silent_for_three_intervals_no_longer_counts() -> None:
    seen = Seen()
    seen.live_workers.replace([lease("a", "a/1")])
    seen.now = 3 * INTERVAL
    seen.live_workers.tick()
    assert seen.live_workers.live == {ME.worker}
    seen.live_workers.apply(event("MODIFIED", lease("a", "a/1", "t1")))
    assert "a/1" in seen.live_workers.live


def test_silence_is_judged_by_ones_own_clock_not_by_the_stored_time() -> None:
    seen = Seen()
    seen.live_workers.replace([lease("a", "a/1", "1970-01-01T00:00:00Z")])
    assert "a/1" in seen.live_workers.live


def test_a_restarted_worker_takes_the_place_of_its_former_self() -> None:
    seen = Seen()
    seen.live_workers.replace([lease("a", "a/1")])
    seen.live_workers.apply(event("MODIFIED", lease("a", "a/2")))
    assert seen.live_workers.live == {"a/2", ME.worker}


def test_a_worker_that_withdraws_or_is_deleted_is_gone_at_once() -> None:
    seen = Seen()
    seen.live_workers.replace([lease("a", "a/1"), lease("b", "b/1")])
    seen.live_workers.apply(event("MODIFIED", lease("a", "")))
    seen.live_workers.apply(event("DELETED", lease("b", "b/1")))
    assert seen.live_workers.live == {ME.worker}


def test_a_draining_worker_gets_no_partition_though_it_keeps_its_identity() -> None:
    body = WorkerLease(ME, "q", 2, ["t"], INTERVAL, draining=True).manifest()
    assert claims(body) == ""
    assert claims(WorkerLease(ME, "q", 2, ["t"], INTERVAL).manifest()) == ME.worker
    spec = body["spec"]
    assert isinstance(spec, dict)
    assert spec["holderIdentity"] == ME.worker


def test_a_registration_that_cannot_be_read_counts_as_claiming() -> None:
    assert claims(lease("a", "a/1", annotations={"asyncjob.dev/worker": "{"})) == "a/1"


def test_a_lease_goes_with_its_pod() -> None:
    metadata = WorkerLease(ME, "q", 2, ["t"], INTERVAL).manifest()["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": ME.pod, "uid": ME.pod_uid}
    ]


def test_the_live_workers_calls_when_it_changes_and_the_first_time() -> None:
    seen = Seen()
    seen.live_workers.replace([])
    seen.live_workers.replace([])
    assert seen.changes == 1
    seen.live_workers.apply(event("ADDED", lease("a", "a/1")))
    seen.live_workers.apply(event("MODIFIED", lease("a", "a/1", "t1")))
    assert seen.changes == 2


def test_without_permission_to_see_others_a_worker_goes_on_alone_in_the_end() -> None:
    seen = Seen()
    before = seen.live_workers.synced
    seen.live_workers.tick()
    assert (before, seen.live_workers.synced, seen.changes) == (False, True, 1)


def test_a_queue_without_an_object_is_open() -> None:
    queue = QueueState(lambda: None, on_unlimited=ignore)
    before = queue.synced
    queue.replace([])
    assert (before, queue.synced) == (False, True)
    assert state(queue) == (False, False, None)


def state(queue: QueueState) -> tuple[bool, bool, int | None]:
    """Return whether it is paused and limited, and the lease that it gives."""
    return queue.paused, queue.limited, queue.defaults.lease_duration_seconds


def test_a_queue_is_followed() -> None:
    queue = QueueState(lambda: None, on_unlimited=ignore)
    queue.replace([{"spec": {"paused": True}}])
    assert state(queue) == (True, False, None)
    spec = {"maxConcurrency": 3, "defaults": {"leaseDurationSeconds": 9}}
    queue.apply(event("MODIFIED", {"spec": spec}))
    assert state(queue) == (False, True, 9)
    queue.apply(event("DELETED", {"spec": spec}))
    assert state(queue) == (False, False, None)


def control(uid: str = "u1") -> dict[str, Any]:
    return {"metadata": {"uid": uid}}


def test_a_running_job_is_told_of_its_cancel() -> None:
    ours = held()
    cancels = CancelWatcher({ours})
    cancels.apply(event("ADDED", control()))
    assert ours.stopped is Stop.CANCELLED


def test_a_cancel_during_the_drain_outranks_it() -> None:
    ours = held()
    ours.stop(Stop.DRAINING)
    CancelWatcher({ours}).replace([control(), control("other")])
    assert ours.stopped is Stop.CANCELLED


def test_a_cancel_seen_before_the_claims_answer_is_remembered_until_the_job_ends() -> None:
    running: set[HeldJob] = set()
    cancels = CancelWatcher(running)
    cancels.apply(event("ADDED", control()))
    assert cancels.is_cancel_requested("u1")
    cancels.apply(event("DELETED", control()))
    assert not cancels.is_cancel_requested("u1")
    cancels.apply(event("ADDED", control()))
    cancels.replace([])
    assert not cancels.is_cancel_requested("u1")
