"""What a watch and the answers to writes show in any order: the older never wins."""

from typing import Any

from asyncjob.json_types import JsonObject
from asyncjob_operator.observe.versions import REMEMBERED, Versions
from support.audience import Audience
from support.snapshots import POD, POD_UID, WORKER, raw, roll_lease, running

QUEUE = ("ns", "default")


def queue(version: int, **spec: Any) -> JsonObject:
    meta: JsonObject = {"namespace": "ns", "name": "default", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": spec}


def pod(version: int, **meta: Any) -> JsonObject:
    named = {"namespace": "ns", "name": POD, "uid": POD_UID, "resourceVersion": str(version)}
    return {"metadata": {**named, **meta}, "status": {"phase": "Running"}}


def test_an_older_queue_brings_no_old_limits_back() -> None:
    queues = Audience().observer.queues
    queues.saw(queue(9, maxConcurrency=9))
    queues.saw(queue(11, maxConcurrency=1, paused=True))
    queues.saw(queue(10, maxConcurrency=9))
    assert queues.view(*QUEUE).paused
    assert queues.view(*QUEUE).limits.concurrency == 1


def test_a_late_answer_brings_no_deleted_queue_back_and_a_new_one_of_its_name_is_taken() -> None:
    queues = Audience().observer.queues
    queues.saw(queue(10, maxConcurrency=1))
    queues.lost(*QUEUE)
    queues.saw(queue(10, maxConcurrency=1))
    assert QUEUE not in queues
    queues.saw(queue(12, maxConcurrency=2))
    assert queues.view(*QUEUE).limits.concurrency == 2


def test_an_older_pod_is_no_news_and_a_late_read_raises_no_ghost() -> None:
    audience = Audience()
    workers = audience.observer.workers
    audience.see("job", phase="Running", **running())
    job = audience.observer.store.get("uid-job")
    assert job
    workers.saw_pod(pod(11, deletionTimestamp="2026-01-01T00:00:00Z"))
    workers.saw_pod(pod(10))
    held = workers.holder(job).pod
    assert held
    assert held.deleting
    workers.lost_pod("ns", POD)
    workers.saw_pod(pod(11))
    assert workers.holder(job).pod is None


def test_an_older_lease_names_no_older_process_and_lists_no_older_types() -> None:
    audience = Audience()
    observer = audience.observer
    audience.see("job", phase="Running", spec={"type": "b"}, **running())
    job = observer.store.get("uid-job")
    assert job
    for version, worker, types in ((11, WORKER, ["a", "b"]), (10, "older", ["a"])):
        lease: Any = roll_lease(POD, version, worker=worker, types=types)
        lease["metadata"]["resourceVersion"] = str(version)
        lease["metadata"]["annotations"]["asyncjob.dev/pod-uid"] = POD_UID
        observer.workers.saw_lease(lease)
        observer.roll_calls.saw_lease(lease)
    assert observer.workers.holder(job).newest == WORKER
    assert observer.roll_calls.knows(job)


def test_a_late_answer_brings_no_deleted_job_back() -> None:
    audience = Audience()
    uid = audience.see("job")
    audience.observer.lost(uid)
    answer: Any = raw("job", admitted=True)
    answer["metadata"]["resourceVersion"] = "9999"
    audience.observer.saw(answer, live=True)
    assert uid not in audience.observer.store
    assert not audience.observer.store.counts


def test_of_what_is_gone_only_the_latest_is_remembered() -> None:
    versions: Versions[int] = Versions()
    for key in range(REMEMBERED + 5):
        assert versions.is_news(key, "1")
        versions.gone(key)
    assert len(versions._gone) == REMEMBERED
    assert not versions._seen
