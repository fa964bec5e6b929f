"""What a watch and the answers to writes show in any order: the older never wins."""

from typing import Any

from asyncjob.json_types import JsonObject
from asyncjob_operator.cache.versions import MAX_REMEMBERED_DELETED, VersionTracker
from support.objects.snapshots import POD, POD_UID, WORKER, raw, roll_lease, running
from support.parts.audience import Audience

QUEUE = ("ns", "default")


def queue(version: int, **spec: Any) -> JsonObject:
    meta: JsonObject = {"namespace": "ns", "name": "default", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": spec}


def pod(version: int, **meta: Any) -> JsonObject:
    named = {"namespace": "ns", "name": POD, "uid": POD_UID, "resourceVersion": str(version)}
    return {"metadata": {**named, **meta}, "status": {"phase": "Running"}}


def test_an_older_queue_brings_no_old_limits_back() -> None:
    queues = Audience().caches.queues
    queues.on_update(queue(9, maxConcurrency=9))
    queues.on_update(queue(11, maxConcurrency=1, paused=True))
    queues.on_update(queue(10, maxConcurrency=9))
    assert queues.view(*QUEUE).paused
    assert queues.view(*QUEUE).limits.max_concurrency == 1


def test_a_late_answer_brings_no_deleted_queue_back_and_a_new_one_of_its_name_is_taken() -> None:
    queues = Audience().caches.queues
    queues.on_update(queue(10, maxConcurrency=1))
    queues.on_delete(*QUEUE)
    queues.on_update(queue(10, maxConcurrency=1))
    assert QUEUE not in queues
    queues.on_update(queue(12, maxConcurrency=2))
    assert queues.view(*QUEUE).limits.max_concurrency == 2


def test_an_older_pod_is_no_news_and_a_late_read_raises_no_ghost() -> None:
    audience = Audience()
    workers = audience.caches.worker_pods
    audience.see("job", phase="Running", **running())
    job = audience.caches.store.get("uid-job")
    assert job
    workers.on_pod_update(pod(11, deletionTimestamp="2026-01-01T00:00:00Z"))
    workers.on_pod_update(pod(10))
    held = workers.holder_status(job).pod
    assert held
    assert held.deleting
    workers.on_pod_delete("ns", POD)
    workers.on_pod_update(pod(11))
    assert workers.holder_status(job).pod is None


def test_an_older_lease_names_no_older_process_and_lists_no_older_types() -> None:
    audience = Audience()
    caches = audience.caches
    audience.see("job", phase="Running", spec={"type": "b"}, **running())
    job = caches.store.get("uid-job")
    assert job
    for version, worker, types in ((11, WORKER, ["a", "b"]), (10, "older", ["a"])):
        lease: Any = roll_lease(POD, version, worker=worker, types=types)
        lease["metadata"]["resourceVersion"] = str(version)
        lease["metadata"]["annotations"]["asyncjob.dev/pod-uid"] = POD_UID
        caches.worker_pods.on_lease_update(lease)
        caches.worker_registry.on_lease_update(lease)
    assert caches.worker_pods.holder_status(job).newest_worker == WORKER
    assert caches.worker_registry.is_served(job)


def test_a_late_answer_brings_no_deleted_job_back() -> None:
    audience = Audience()
    uid = audience.see("job")
    audience.observer.on_delete(uid)
    answer: Any = raw("job", admitted=True)
    answer["metadata"]["resourceVersion"] = "9999"
    audience.observer.on_update(answer, just_changed=True)
    assert uid not in audience.caches.store
    assert not audience.caches.store.counts


def test_of_what_is_gone_only_the_latest_is_remembered() -> None:
    versions: VersionTracker[int] = VersionTracker()
    for key in range(MAX_REMEMBERED_DELETED + 5):
        assert versions.accept(key, "1")
        versions.record_deleted(key)
    assert len(versions._deleted) == MAX_REMEMBERED_DELETED
    assert not versions._newest


def test_a_deletion_that_is_told_late_does_not_take_the_queue_made_again_since() -> None:
    queues = Audience().caches.queues
    queues.on_update(queue(10, maxConcurrency=1))
    queues.on_update(queue(14, maxConcurrency=2))
    queues.on_delete(*QUEUE, "12")
    assert queues.view(*QUEUE).limits.max_concurrency == 2
    queues.on_delete(*QUEUE, "16")
    assert QUEUE not in queues
