"""Labels and Leases that name what is in another namespace, or nowhere: anybody may write them."""

from typing import Any

from asyncjob_operator.cache.scheduled_jobs import MAX_NAMES, MAX_ORPHANS
from asyncjob_operator.controllers.cron_job_evaluator import CronJobEvaluator
from asyncjob_operator.controllers.workqueue import DelayingQueue
from support.objects.schedules import raw_cron, settled
from support.objects.snapshots import POD, POD_UID, roll_lease, running, stamp
from support.parts.audience import Audience
from support.parts.vitals import quarantine

CRON = "uid-nightly"


def test_a_child_in_another_namespace_keeps_nobody_waiting_and_fails_nobody() -> None:
    audience = Audience()
    audience.see("parent", phase="Succeeded", completionTime=stamp(0))
    audience.see("foreign", namespace="other", parent="uid-parent")
    waits = {"dependsOn": [{"name": "parent", "children": True}]}
    uid = audience.see("next", phase="Pending", reason="WaitingForDependency", spec=waits)
    assert audience.wanted == {uid: "ns/promote"}
    end = {"phase": "Cancelled", "completionTime": stamp(0)}
    audience.see("foreign", namespace="other", parent="uid-parent", **end)
    assert audience.wanted == {uid: "ns/promote"}


def test_a_job_cancelled_with_cascade_takes_no_child_in_another_namespace_with_it() -> None:
    audience = Audience()
    audience.see("parent")
    audience.see("foreign", namespace="other", parent="uid-parent")
    audience.see("own", parent="uid-parent")
    audience.see("parent", spec={"cancel": True, "cancelCascade": True})
    assert audience.wanted == {"uid-parent": "ns/cancel", "uid-own": "ns/cascade"}


def test_runs_in_another_namespace_are_none_of_a_schedule_and_are_not_removed() -> None:
    audience = Audience()
    children, wanted = audience.caches.scheduled_jobs, list[str]()
    schedules = CronJobEvaluator(
        "me",
        children,
        audience.moment,
        wanted.append,
        delaying_queue=DelayingQueue(),
        quarantine=quarantine(),
    )
    schedules.on_update(raw_cron(status=settled("2026-11-20T02:00"), successfulJobsHistoryLimit=0))
    wanted.clear()
    end: dict[str, Any] = {"phase": "Succeeded", "completionTime": stamp(0)}
    audience.see("foreign", namespace="other", cron=CRON, **end)
    assert wanted == []
    assert children.jobs_of(("ns", CRON)) == ()
    assert len(children.jobs_of(("other", CRON))) == 1


def test_a_pod_of_another_namespace_with_the_holders_uid_brings_up_nothing() -> None:
    audience = Audience()
    audience.see("job", phase="Running", **running())
    meta: Any = {"namespace": "other", "name": POD, "uid": POD_UID, "resourceVersion": "1"}
    audience.caches.worker_pods.on_pod_update({"metadata": meta, "status": {"phase": "Failed"}})
    assert audience.wanted == {}
    assert audience.caches.store.held_by("other", POD_UID) == []
    assert audience.caches.store.held_by("ns", POD_UID) == ["uid-job"]


def test_names_of_the_jobs_of_unknown_schedules_are_not_kept_for_ever() -> None:
    audience = Audience()
    children = audience.caches.scheduled_jobs
    for number in range(2 * MAX_ORPHANS):
        uid = audience.see(f"j{number}", cron=f"made-up-{number}")
        audience.observer.on_delete(uid)
    assert len(children._names) == MAX_ORPHANS
    assert len(children._orphans) == MAX_ORPHANS


def test_names_of_a_schedule_that_is_known_outlive_its_jobs_and_go_with_it() -> None:
    audience = Audience()
    children = audience.caches.scheduled_jobs
    audience.observer.on_delete(audience.see("early", cron=CRON))
    schedules = CronJobEvaluator(
        "me",
        children,
        audience.moment,
        lambda _: None,
        delaying_queue=DelayingQueue(),
        quarantine=quarantine(),
    )
    schedules.on_update(raw_cron(status=settled("2026-11-20T02:00")))
    for number in range(MAX_ORPHANS + 1):
        audience.observer.on_delete(audience.see(f"j{number}", cron=f"made-up-{number}"))
    assert children.names(("ns", CRON)) == {"early"}
    for number in range(MAX_NAMES + 1):
        children._remember(("ns", CRON), f"n{number}")
    assert len(children.names(("ns", CRON))) == MAX_NAMES
    schedules.on_delete(("ns", "nightly"))
    assert ("ns", CRON) not in children._names


def test_a_job_whose_label_changes_is_of_one_schedule_only() -> None:
    changed: list[tuple[str, str]] = []
    audience = Audience()
    children = audience.caches.scheduled_jobs
    children.add_listener(changed.append)
    audience.see("job", cron="one")
    audience.see("job", cron="two")
    assert (children.jobs_of(("ns", "one")), len(children.jobs_of(("ns", "two")))) == ((), 1)
    audience.see("job")
    assert children.jobs_of(("ns", "two")) == ()
    assert changed == [("ns", "one"), ("ns", "one"), ("ns", "two"), ("ns", "two")]


def test_a_place_of_an_admitted_job_goes_to_another_type_when_its_workers_are_gone() -> None:
    audience = Audience()
    calls = audience.caches.worker_registry
    audience.queue(maxConcurrency=1)
    for pod in ("a", "b"):
        calls.on_lease_update(roll_lease(pod, 0, types=[pod]))
    unserved = audience.see("first", admitted=True, spec={"type": "a"}, retries=1)
    admission = audience.caches.admission_cache.get(("ns", "default"))
    assert admission
    place = {"uid": unserved, "name": "first", "time": stamp(0)}
    meta: Any = {"namespace": "ns", "name": "default", "resourceVersion": "900"}
    status: Any = {"reservations": [place]}
    audience.caches.queues.on_update(
        {"metadata": meta, "spec": {"maxConcurrency": 1}, "status": status}
    )
    other, same = (
        audience.see("other", spec={"type": "b"}),
        audience.see("same", spec={"type": "a"}),
    )
    assert (other in admission.pending, same in admission.pending) == (True, True)
    calls.on_lease_delete("ns", "asyncjob-worker-a")
    assert (other in admission.pending, same in admission.pending) == (True, False)
    audience.pass_time(59)
    assert audience.wanted == {}
    audience.pass_time(1)
    assert audience.wanted == {unserved: "ns/withdraw-unserved"}
    calls.on_lease_update(roll_lease("a2", 60, types=["a"]))
    assert audience.wanted == {}
    assert same in admission.pending


def test_a_job_of_an_unknown_type_is_looked_at_when_a_worker_comes_and_not_by_time() -> None:
    audience = Audience()
    calls = audience.caches.worker_registry
    audience.queue(maxConcurrency=1)
    calls.on_lease_update(roll_lease("a", 0, types=["a"]))
    uid = audience.see("job", spec={"type": "b", "queueTimeoutSeconds": 1000})
    assert audience.delaying_queue._heap.next_time() == 1000
    admission = audience.caches.admission_cache.get(("ns", "default"))
    assert admission
    assert uid not in admission.pending
    calls.on_lease_update(roll_lease("b", 0, types=["b"]))
    assert uid in admission.pending


def test_a_dismissed_run_is_removed_with_its_history_although_a_redrive_was_requested() -> None:
    audience = Audience()
    end: dict[str, Any] = {"completionTime": stamp(0), "spec": {"redrive": 1}}
    audience.see("run", cron=CRON, phase="DeadLetter", **end)
    [dead] = audience.caches.scheduled_jobs.jobs_of(("ns", CRON))
    audience.see("run", cron=CRON, phase="Cancelled", **end)
    [dismissed] = audience.caches.scheduled_jobs.jobs_of(("ns", CRON))
    assert (dead.has_open_request, dismissed.has_open_request) == (True, False)
