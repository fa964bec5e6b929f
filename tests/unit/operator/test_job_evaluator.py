"""What the observer makes of what is seen, in whatever order it comes."""

from typing import Any, Final

import pytest

from asyncjob.json_types import JsonObject
from asyncjob_operator.core.decision import ChangePhase, RedriveRefusal
from asyncjob_operator.core.now import Now, to_epoch
from support.objects.snapshots import (
    CREATED,
    EPOCH,
    POD,
    POD_UID,
    WORKER,
    at,
    raw,
    roll_lease,
    running,
    stamp,
)
from support.parts.evaluation import evaluation


class JobEvaluatorHarness:
    """An observer with a clock in the test's hands."""

    def __init__(self) -> None:
        self.now, self.version = 0.0, 100
        self.deaths: list[str] = []
        self.rooms: list[tuple[str, str]] = []
        self.evaluation = evaluation(
            self.moment,
            on_dead_letter=lambda job, message: self.deaths.append(f"{job.name}: {message}"),
            enqueue_admission=self.rooms.append,
        )
        self.observer, self.caches = self.evaluation.evaluator, self.evaluation.caches
        self.delaying_queue = self.evaluation.delaying_queue

    @property
    def wanted(self) -> set[str]:
        return set(self.evaluation.queued)

    def moment(self) -> Now:
        return at(self.now)

    def see(
        self, name: str = "job", *, just_changed: bool = True, version: int = 0, **changes: Any
    ) -> str:
        self.version += 1
        obj: Any = raw(name, **changes)
        obj["metadata"]["resourceVersion"] = str(version or self.version)
        self.observer.on_update(obj, just_changed=just_changed)
        return f"uid-{name}"

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for uid in self.delaying_queue.pop_due(self.now, 1000):
            self.observer.evaluate(uid)

    def pod(self, written: float | None = None, *, read: bool = False, **status: Any) -> None:
        meta: dict[str, Any] = {"namespace": "ns", "name": POD, "uid": POD_UID}
        if written is not None:
            meta["managedFields"] = [{"subresource": "status", "time": stamp(written)}]
        pods = self.caches.worker_pods
        (pods.on_pod_read if read else pods.on_pod_update)({"metadata": meta, "status": status})

    def announce(self, identity: str) -> None:
        meta: JsonObject = {
            "namespace": "ns",
            "name": f"asyncjob-worker-{POD}",
            "annotations": {"asyncjob.dev/pod-uid": POD_UID},
        }
        self.caches.worker_pods.on_lease_update(
            {"metadata": meta, "spec": {"holderIdentity": identity}}
        )


def test_an_older_version_never_replaces_a_newer() -> None:
    harness = JobEvaluatorHarness()
    uid = harness.see(phase="Running", version=9, **running())
    harness.see(phase="Queued", version=5, spec={"cancel": True})
    assert not harness.wanted
    job = harness.caches.store.get(uid)
    assert job
    assert job.resource_version == "9"


@pytest.mark.parametrize("pending", [{}, {"spec": {"rerun": 1}}], ids=["settled", "with a rerun"])
def test_a_job_found_finished_is_as_old_as_its_version_says(pending: dict[str, Any]) -> None:
    harness = JobEvaluatorHarness()
    harness.now = 10_000.0
    times, ended = harness.caches.version_times, EPOCH + 600
    times.sample("50", ended)
    harness.see("old", phase="Succeeded", version=50, completionTime=stamp(-900), **pending)
    harness.see("new", phase="Succeeded", version=51, completionTime=stamp(-900), **pending)
    ages = {job.name: job.completed_at for job in harness.caches.store.finished()}
    assert ages == {"old": ended, "new": EPOCH + 10_000}


def test_versions_are_compared_as_numbers() -> None:
    harness = JobEvaluatorHarness()
    uid = harness.see(version=9)
    harness.see(version=10, spec={"cancel": True})
    assert harness.wanted == {uid}


def test_what_is_due_is_wanted_and_no_longer_when_somebody_else_has_done_it() -> None:
    harness = JobEvaluatorHarness()
    uid = harness.see(spec={"cancel": True})
    assert harness.wanted == {uid}
    harness.see(phase="Cancelled", completionTime=stamp(0), spec={"cancel": True})
    assert not harness.wanted


def test_time_alone_brings_a_job_up() -> None:
    harness = JobEvaluatorHarness()
    uid = harness.see(phase="Retrying", retryDelaySeconds=3.0, nextAttemptTime=stamp(3))
    harness.pass_time(2)
    assert not harness.wanted
    harness.pass_time(1)
    assert harness.wanted == {uid}


def test_a_finished_job_leaves_only_a_record() -> None:
    harness = JobEvaluatorHarness()
    uid = harness.see()
    harness.see(phase="Succeeded", completionTime=stamp(0))
    assert harness.caches.store.get(uid) is None
    assert [record.uid for record in harness.caches.store.finished()] == [uid]
    assert len(harness.delaying_queue) == 0


def test_a_deleted_job_is_forgotten_altogether() -> None:
    harness = JobEvaluatorHarness()
    uid = harness.see(spec={"cancel": True})
    harness.observer.on_delete(uid)
    assert len(harness.caches.store) == 0
    assert not harness.wanted
    assert not harness.caches.store.counts


def test_a_fresh_read_does_not_bring_a_deleted_job_back() -> None:
    harness = JobEvaluatorHarness()
    uid = harness.see(spec={"cancel": True})
    harness.observer.on_delete(uid)
    _, decision = harness.observer.refresh(raw(spec={"cancel": True}), 0.5)
    assert isinstance(decision.effect, ChangePhase)
    assert uid not in harness.caches.store


def test_the_end_of_a_pod_brings_up_the_jobs_it_held_and_no_others() -> None:
    harness = JobEvaluatorHarness()
    harness.pod(phase="Running")
    held = harness.see("held", phase="Running", **running())
    other = running()
    other["lease"] = {**other["lease"], "holder": "another", "holderUID": "another"}
    harness.see("other", phase="Running", **other)
    harness.pod(phase="Failed")
    assert harness.wanted == {held}


def test_a_type_that_nobody_lists_any_more_brings_up_the_jobs_of_its_queue() -> None:
    harness = JobEvaluatorHarness()
    queue: JsonObject = {
        "metadata": {"namespace": "ns", "name": "default"},
        "spec": {"unknownType": "DeadLetter"},
    }
    harness.caches.queues.on_update(queue)
    uid = harness.see()
    calls = harness.caches.worker_registry
    for renewed in (0, 15):
        harness.now = renewed
        calls.on_lease_update(roll_lease("other", renewed, types=["other"]))
        calls.on_lease_update(roll_lease("knowing", renewed, types=["test"]))
    harness.pass_time(40)
    assert not harness.wanted
    calls.on_lease_update(roll_lease("other", 55, types=["other"]))
    calls.on_lease_delete("ns", "asyncjob-worker-knowing")
    for renewed in (85, 114):
        harness.pass_time(renewed - harness.now)
        calls.on_lease_update(roll_lease("other", renewed, types=["other"]))
    assert not harness.wanted
    harness.pass_time(1)
    assert harness.wanted == {uid}


def test_a_newer_registration_brings_up_the_jobs_of_the_older() -> None:
    harness = JobEvaluatorHarness()
    uid = harness.see(phase="Running", **running())
    for identity, wanted in ((WORKER, set()), ("newer", {uid})):
        harness.announce(identity)
        assert harness.wanted == wanted


KILLED = {"exitCode": 137, "finishedAt": stamp(30)}
DOWN = {"name": "worker", "state": {"waiting": {}}, "lastState": {"terminated": KILLED}}
AGAIN = {"name": "worker", "state": {"running": {}}, "lastState": {"terminated": KILLED}}


def test_a_container_that_is_down_brings_up_the_jobs_that_were_claimed_before() -> None:
    harness = JobEvaluatorHarness()
    harness.announce(WORKER)
    uid = harness.see(phase="Running", **running())
    harness.now = 30
    harness.pod(phase="Running", containerStatuses=[DOWN])
    assert harness.wanted == {uid}


def test_the_end_of_a_process_that_was_known_for_long_is_proof_at_once() -> None:
    harness = JobEvaluatorHarness()
    for renewed in (0, 15, 30):
        harness.now = renewed
        harness.announce(WORKER)
    uid = harness.see(phase="Running", **running())
    harness.pod(written=30, phase="Running", containerStatuses=[AGAIN])
    assert harness.wanted == {uid}


@pytest.mark.parametrize("written", [9, None])
def test_the_end_that_a_late_watch_shows_may_be_older_than_the_registration(
    written: float | None,
) -> None:
    harness = JobEvaluatorHarness()
    harness.announce(WORKER)
    harness.now = 30
    uid = harness.see(phase="Running", **running())
    harness.pod(written=written, phase="Running", containerStatuses=[AGAIN])
    assert uid not in harness.wanted


def test_the_end_that_only_a_read_shows_may_have_been_written_before_the_rest_of_the_status() -> (
    None
):
    harness = JobEvaluatorHarness()
    harness.announce(WORKER)
    harness.now = 30
    uid = harness.see(phase="Running", **running())
    harness.pod(written=30, read=True, phase="Running", containerStatuses=[AGAIN])
    assert uid not in harness.wanted


def test_an_ending_that_a_list_shows_after_a_break_may_be_older_than_the_registration() -> None:
    harness = JobEvaluatorHarness()
    harness.announce(WORKER)
    harness.now = 30
    uid = harness.see(phase="Running", **running())
    harness.caches.worker_pods.on_pods_relisted()
    harness.pod(written=30, phase="Running", containerStatuses=[AGAIN])
    assert uid not in harness.wanted


def test_a_refused_redrive_is_asked_for_once_and_granted_when_the_holder_has_finished() -> None:
    harness = JobEvaluatorHarness()
    spec = {"deduplicationId": "one"}
    harness.see("holder", admitted=True, spec=spec)
    uid = harness.see(
        "dead", phase="DeadLetter", completionTime=stamp(0), spec={**spec, "redrive": 1}
    )
    assert harness.wanted == {uid}
    harness.observer.record_refusal(uid, 1, RedriveRefusal.DUPLICATE)
    harness.observer.evaluate(uid)
    assert not harness.wanted
    harness.see("holder", phase="Succeeded", completionTime=stamp(1), spec=spec)
    assert harness.wanted == {uid}


AGE: Final = round(EPOCH - to_epoch(CREATED, default=EPOCH))
"""Seconds from the creation of all these jobs to the beginning."""

LATE: dict[str, Any] = {
    "phase": "DeadLetter",
    "completionTime": stamp(5),
    "spec": {"deadlineSeconds": 60 + AGE, "redrive": 1},
}


def test_a_redrive_past_the_deadline_is_refused_once_and_is_void_then() -> None:
    harness = JobEvaluatorHarness()
    harness.now = 61
    uid = harness.see("dead", **LATE)
    assert harness.wanted == {uid}
    assert harness.caches.store.get(uid) is not None
    harness.observer.record_refusal(uid, 1, RedriveRefusal.PAST_DEADLINE)
    harness.observer.evaluate(uid)
    assert not harness.wanted
    [kept] = harness.caches.store.finished()
    assert (kept.uid, kept.awaits_request) == (uid, False)
    assert harness.caches.store.get(uid) is None, "no more is kept of it than of any other"
    harness.see("dead", **{**LATE, "spec": {**LATE["spec"], "redrive": 2}})
    assert harness.wanted == {uid}


def test_nothing_is_said_of_a_redrive_past_the_deadline_that_lies_in_the_first_list() -> None:
    """Each operator that takes over would say it once more, for as long as the job is kept."""
    harness = JobEvaluatorHarness()
    harness.now = 61
    harness.see("dead", just_changed=False, **LATE)
    assert not harness.wanted
    [kept] = harness.caches.store.finished()
    assert not kept.awaits_request


def test_a_redrive_in_time_that_lies_in_the_first_list_is_done() -> None:
    harness = JobEvaluatorHarness()
    harness.now = 59
    assert {harness.see("dead", just_changed=False, **LATE)} == harness.wanted


def test_a_redrive_request_is_void_once_the_dead_letter_was_dismissed() -> None:
    harness = JobEvaluatorHarness()
    spec = {"deduplicationId": "one", "redrive": 1}
    harness.see("holder", admitted=True, spec={"deduplicationId": "one"})
    uid = harness.see("dead", phase="DeadLetter", completionTime=stamp(0), spec=spec)
    harness.observer.record_refusal(uid, 1, RedriveRefusal.DUPLICATE)
    assert harness.caches.store.get(uid)
    [kept] = harness.caches.store.finished()
    assert kept.awaits_request
    ended: dict[str, Any] = {"completionTime": stamp(0), "spec": {**spec, "cancel": True}}
    harness.see("dead", phase="Cancelled", **ended)
    assert [record.uid for record in harness.caches.store.finished()] == [uid]


@pytest.mark.parametrize("fails", [False, True], ids=["in time", "quarantined"])
def test_a_finished_job_whose_rerun_is_pending_is_known_to_retention(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    harness = JobEvaluatorHarness()
    if fails:
        monkeypatch.setattr(harness.observer, "_decide", broken)
    uid = harness.see("done", phase="Succeeded", completionTime=stamp(-50), spec={"rerun": 1})
    [kept] = harness.caches.store.finished()
    assert (kept.uid, kept.awaits_request) == (uid, True)
    monkeypatch.undo()
    harness.see("done", phase="Succeeded", completionTime=stamp(-50), reruns=1, spec={"rerun": 1})
    [kept] = harness.caches.store.finished()
    assert not kept.awaits_request
    assert kept.reported_completion == to_epoch(stamp(-50), default=0.0)


def broken(*_: object, **__: object) -> None:
    raise TypeError("a fault of ours")


def test_a_postponed_job_is_left_alone_until_its_time_whatever_is_seen_of_it() -> None:
    harness = JobEvaluatorHarness()
    uid = harness.see(spec={"cancel": True})
    harness.observer.requeue_after(uid, 10)
    harness.see(spec={"cancel": True, "suspend": True})
    harness.observer.evaluate(uid)
    assert not harness.wanted
    harness.pass_time(10)
    assert harness.wanted == {uid}


def test_a_death_seen_as_it_happens_is_told_once_with_its_message() -> None:
    harness = JobEvaluatorHarness()
    harness.see(phase="Running", **running())
    for _ in range(2):
        harness.see(phase="DeadLetter", completionTime=stamp(0), message="no luck")
    assert harness.deaths == ["job: no luck"]


def test_deaths_found_in_a_list_are_old_news() -> None:
    harness = JobEvaluatorHarness()
    harness.see(phase="Running", **running())
    harness.see(phase="DeadLetter", completionTime=stamp(0), just_changed=False)
    harness.see("other", phase="DeadLetter", completionTime=stamp(0), just_changed=False)
    assert harness.deaths == []


def test_pausing_a_queue_stops_its_timeouts_and_resuming_starts_them_again() -> None:
    harness = JobEvaluatorHarness()
    uid = harness.see(spec={"queueTimeoutSeconds": 10})
    meta = {"namespace": "ns", "name": "default"}
    harness.caches.queues.on_update({"metadata": meta, "spec": {"paused": True}})
    harness.pass_time(20)
    assert not harness.wanted
    harness.caches.queues.on_delete("ns", "default")
    harness.pass_time(9)
    assert not harness.wanted
    harness.pass_time(1)
    assert harness.wanted == {uid}


def test_an_unknown_phase_is_left_to_who_knows_it() -> None:
    harness = JobEvaluatorHarness()
    harness.see(phase="Dreaming")
    assert len(harness.caches.store) == 0


def test_jobs_are_counted_by_namespace_queue_and_phase() -> None:
    harness = JobEvaluatorHarness()
    harness.see("a")
    harness.see("b", phase="Running", **running())
    harness.see("b", phase="Succeeded", completionTime=stamp(0))
    counts = {phase.value: n for (_, _, phase), n in harness.caches.store.counts.items()}
    assert counts == {"Queued": 1, "Succeeded": 1}


def test_the_pods_that_hold_jobs_are_known_until_their_jobs_have_left_them() -> None:
    harness = JobEvaluatorHarness()
    harness.see(phase="Running", **running())
    harness.see("queued")
    assert harness.caches.store.busy_pods() == {("ns", POD)}
    harness.see(phase="Queued")
    assert harness.caches.store.busy_pods() == set()


def test_a_change_of_a_large_queue_counts_who_runs_at_once_and_takes_the_rest_bit_by_bit() -> None:
    harness = JobEvaluatorHarness()
    uid = harness.see("runs", phase="Running", **running())
    for number in range(300):
        harness.see(f"waits-{number}")
    meta = {"namespace": "ns", "name": "default", "resourceVersion": "1000"}
    harness.caches.queues.on_update({"metadata": meta, "spec": {"maxConcurrency": 2}})
    admission = harness.caches.admission_cache.get(("ns", "default"))
    assert admission
    assert (set(admission.active), len(admission.pending)) == ({uid}, 0)
    harness.pass_time(0)
    assert len(admission.pending) == 300


def test_a_duplicate_seen_before_the_others_admission_is_looked_at_again() -> None:
    harness = JobEvaluatorHarness()
    harness.see("b", spec={"deduplicationId": "one"})
    uid = harness.see("a", spec={"deduplicationId": "one"})
    assert uid not in harness.wanted
    harness.see("b", spec={"deduplicationId": "one"}, admitted=True)
    assert uid in harness.wanted


def test_a_job_that_no_worker_of_a_limited_queue_knows_does_not_line_up_for_a_place() -> None:
    harness = JobEvaluatorHarness()
    meta = {"namespace": "ns", "name": "default", "resourceVersion": "7"}
    spec: JsonObject = {"maxConcurrency": 1, "unknownType": "DeadLetter"}
    harness.caches.queues.on_update({"metadata": meta, "spec": spec})
    admission = harness.caches.admission_cache.get(("ns", "default"))
    assert admission
    harness.see("early", spec={"type": "b"})
    assert len(admission.pending) == 1, "without a worker nobody can tell"
    harness.caches.worker_registry.on_lease_update(roll_lease("w", 0, types=["a"]))
    good, bad = harness.see("good", spec={"type": "a"}), harness.see("bad", spec={"type": "b"})
    assert good in admission.pending
    assert bad not in admission.pending
    harness.caches.worker_registry.on_lease_update(roll_lease("w2", 0, types=["b"]))
    harness.pass_time(6)
    assert bad in admission.pending


def test_a_job_beside_the_line_has_its_queue_timeout() -> None:
    harness = JobEvaluatorHarness()
    meta = {"namespace": "ns", "name": "default", "resourceVersion": "7"}
    harness.caches.queues.on_update({"metadata": meta, "spec": {"maxConcurrency": 1}})
    harness.caches.worker_registry.on_lease_update(roll_lease("w", 0, types=["a"]))
    known = harness.see("known", spec={"type": "a", "queueTimeoutSeconds": 20})
    unknown = harness.see("unknown", spec={"type": "b", "queueTimeoutSeconds": 20})
    for _ in range(5):
        harness.pass_time(5)
    assert harness.wanted == {unknown}
    assert known not in harness.wanted


def test_where_workers_may_not_be_watched_a_limit_alone_decides_how_many_get_a_place() -> None:
    harness = JobEvaluatorHarness()
    meta = {"namespace": "ns", "name": "default", "resourceVersion": "7"}
    harness.caches.queues.on_update({"metadata": meta, "spec": {"maxConcurrency": 3}})
    for number in range(5):
        harness.see(f"job-{number}")
    admissions = harness.evaluation.admission_rounds()

    def taken() -> int:
        plan = admissions.plan(("ns", "default"), harness.moment())
        assert plan
        admissions.requeue(plan)
        return len(plan.admitted)

    assert taken() == 3
    harness.caches.worker_registry.mark_leases_watched()
    assert taken() == 1, "one to try with, while no worker is there"
    harness.caches.worker_registry.on_lease_update(roll_lease("w", 0, types=["test"], slots=2))
    assert taken() == 3
