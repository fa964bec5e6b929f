"""What the observer makes of what is seen, in whatever order it comes."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.job_view import JobView
from asyncjob_operator.controllers.admission import AdmissionRounds
from asyncjob_operator.controllers.job_evaluator import JobEvaluator
from asyncjob_operator.core.decision import ChangePhase
from asyncjob_operator.core.now import Now, to_epoch
from asyncjob_operator.core.options import DecisionOptions
from support.snapshots import POD, POD_UID, WORKER, at, raw, roll_lease, running, stamp
from support.vitals import quarantine


@dataclass
class Ear:
    """Listens."""

    wanted: set[str] = field(default_factory=set)
    deaths: list[str] = field(default_factory=list)
    rooms: list[tuple[str, str]] = field(default_factory=list)

    def enqueue(self, uid: str, lane: str) -> None:  # noqa: ARG002
        self.wanted.add(uid)

    def dequeue(self, uid: str) -> None:
        self.wanted.discard(uid)

    def enqueue_admission(self, queue: tuple[str, str]) -> None:
        self.rooms.append(queue)

    def on_dead_letter(self, job: JobView, message: str) -> None:
        self.deaths.append(f"{job.name}: {message}")


class Scene:
    """An observer with a clock in the test's hands."""

    def __init__(self) -> None:
        self.now, self.version, self.ear = 0.0, 100, Ear()
        self.observer = JobEvaluator(
            DecisionOptions(), self.moment, self.ear, quarantine=quarantine()
        )

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
        for uid in self.observer.delaying_queue.pop_due(self.now, 1000):
            self.observer.evaluate(uid)

    def pod(self, written: float | None = None, *, read: bool = False, **status: Any) -> None:
        meta: dict[str, Any] = {"namespace": "ns", "name": POD, "uid": POD_UID}
        if written is not None:
            meta["managedFields"] = [{"subresource": "status", "time": stamp(written)}]
        pods = self.observer.worker_pods
        (pods.on_pod_read if read else pods.on_pod_update)({"metadata": meta, "status": status})

    def announce(self, identity: str) -> None:
        meta: JsonObject = {
            "namespace": "ns",
            "name": f"asyncjob-worker-{POD}",
            "annotations": {"asyncjob.dev/pod-uid": POD_UID},
        }
        self.observer.worker_pods.on_lease_update(
            {"metadata": meta, "spec": {"holderIdentity": identity}}
        )


def test_an_older_version_never_replaces_a_newer() -> None:
    scene = Scene()
    uid = scene.see(phase="Running", version=9, **running())
    scene.see(phase="Queued", version=5, spec={"cancel": True})
    assert not scene.ear.wanted
    job = scene.observer.store.get(uid)
    assert job
    assert job.resource_version == "9"


def test_versions_are_compared_as_numbers() -> None:
    scene = Scene()
    uid = scene.see(version=9)
    scene.see(version=10, spec={"cancel": True})
    assert scene.ear.wanted == {uid}


def test_what_is_due_is_wanted_and_no_longer_when_somebody_else_has_done_it() -> None:
    scene = Scene()
    uid = scene.see(spec={"cancel": True})
    assert scene.ear.wanted == {uid}
    scene.see(phase="Cancelled", completionTime=stamp(0), spec={"cancel": True})
    assert not scene.ear.wanted


def test_time_alone_brings_a_job_up() -> None:
    scene = Scene()
    uid = scene.see(phase="Retrying", retryDelaySeconds=3.0, nextAttemptTime=stamp(3))
    scene.pass_time(2)
    assert not scene.ear.wanted
    scene.pass_time(1)
    assert scene.ear.wanted == {uid}


def test_a_finished_job_leaves_only_a_record() -> None:
    scene = Scene()
    uid = scene.see()
    scene.see(phase="Succeeded", completionTime=stamp(0))
    assert scene.observer.store.get(uid) is None
    assert [record.uid for record in scene.observer.store.finished()] == [uid]
    assert len(scene.observer.delaying_queue) == 0


def test_a_deleted_job_is_forgotten_altogether() -> None:
    scene = Scene()
    uid = scene.see(spec={"cancel": True})
    scene.observer.on_delete(uid)
    assert len(scene.observer.store) == 0
    assert not scene.ear.wanted
    assert not scene.observer.store.counts


def test_a_fresh_read_does_not_bring_a_deleted_job_back() -> None:
    scene = Scene()
    uid = scene.see(spec={"cancel": True})
    scene.observer.on_delete(uid)
    _, decision = scene.observer.refresh(raw(spec={"cancel": True}), 0.5)
    assert isinstance(decision.effect, ChangePhase)
    assert uid not in scene.observer.store


def test_the_end_of_a_pod_brings_up_the_jobs_it_held_and_no_others() -> None:
    scene = Scene()
    scene.pod(phase="Running")
    held = scene.see("held", phase="Running", **running())
    other = running()
    other["lease"] = {**other["lease"], "holder": "another", "holderUID": "another"}
    scene.see("other", phase="Running", **other)
    scene.pod(phase="Failed")
    assert scene.ear.wanted == {held}


def test_a_type_that_nobody_lists_any_more_brings_up_the_jobs_of_its_queue() -> None:
    scene = Scene()
    queue: JsonObject = {
        "metadata": {"namespace": "ns", "name": "default"},
        "spec": {"unknownType": "DeadLetter"},
    }
    scene.observer.queues.on_update(queue)
    uid = scene.see()
    calls = scene.observer.worker_registry
    for renewed in (0, 15):
        scene.now = renewed
        calls.on_lease_update(roll_lease("other", renewed, types=["other"]))
        calls.on_lease_update(roll_lease("knowing", renewed, types=["test"]))
    scene.pass_time(40)
    assert not scene.ear.wanted
    calls.on_lease_update(roll_lease("other", 55, types=["other"]))
    calls.on_lease_delete("ns", "asyncjob-worker-knowing")
    for renewed in (85, 114):
        scene.pass_time(renewed - scene.now)
        calls.on_lease_update(roll_lease("other", renewed, types=["other"]))
    assert not scene.ear.wanted
    scene.pass_time(1)
    assert scene.ear.wanted == {uid}


def test_a_newer_announcement_brings_up_the_jobs_of_the_older() -> None:
    scene = Scene()
    uid = scene.see(phase="Running", **running())
    for identity, wanted in ((WORKER, set()), ("newer", {uid})):
        scene.announce(identity)
        assert scene.ear.wanted == wanted


KILLED = {"exitCode": 137, "finishedAt": stamp(30)}
DOWN = {"name": "worker", "state": {"waiting": {}}, "lastState": {"terminated": KILLED}}
AGAIN = {"name": "worker", "state": {"running": {}}, "lastState": {"terminated": KILLED}}


def test_a_container_that_is_down_brings_up_the_jobs_that_were_claimed_before() -> None:
    scene = Scene()
    scene.announce(WORKER)
    uid = scene.see(phase="Running", **running())
    scene.now = 30
    scene.pod(phase="Running", containerStatuses=[DOWN])
    assert scene.ear.wanted == {uid}


def test_the_end_of_a_process_that_was_known_for_long_is_proof_at_once() -> None:
    scene = Scene()
    for renewed in (0, 15, 30):
        scene.now = renewed
        scene.announce(WORKER)
    uid = scene.see(phase="Running", **running())
    scene.pod(written=30, phase="Running", containerStatuses=[AGAIN])
    assert scene.ear.wanted == {uid}


@pytest.mark.parametrize("written", [9, None])
def test_the_end_that_a_late_watch_shows_may_be_older_than_the_announcement(
    written: float | None,
) -> None:
    scene = Scene()
    scene.announce(WORKER)
    scene.now = 30
    uid = scene.see(phase="Running", **running())
    scene.pod(written=written, phase="Running", containerStatuses=[AGAIN])
    assert uid not in scene.ear.wanted


def test_the_end_that_only_a_read_shows_may_have_been_written_before_the_rest_of_the_status() -> (
    None
):
    scene = Scene()
    scene.announce(WORKER)
    scene.now = 30
    uid = scene.see(phase="Running", **running())
    scene.pod(written=30, read=True, phase="Running", containerStatuses=[AGAIN])
    assert uid not in scene.ear.wanted


def test_an_ending_that_a_list_shows_after_a_break_may_be_older_than_the_announcement() -> None:
    scene = Scene()
    scene.announce(WORKER)
    scene.now = 30
    uid = scene.see(phase="Running", **running())
    scene.observer.worker_pods.on_pods_relisted()
    scene.pod(written=30, phase="Running", containerStatuses=[AGAIN])
    assert uid not in scene.ear.wanted


def test_a_refused_redrive_is_asked_for_once_and_granted_when_the_holder_has_finished() -> None:
    scene = Scene()
    spec = {"deduplicationId": "one"}
    scene.see("holder", admitted=True, spec=spec)
    uid = scene.see(
        "dead", phase="DeadLetter", completionTime=stamp(0), spec={**spec, "redrive": 1}
    )
    assert scene.ear.wanted == {uid}
    scene.observer.record_refusal(uid, 1)
    scene.observer.evaluate(uid)
    assert not scene.ear.wanted
    scene.see("holder", phase="Succeeded", completionTime=stamp(1), spec=spec)
    assert scene.ear.wanted == {uid}


def test_a_redrive_request_is_void_once_the_dead_letter_was_dismissed() -> None:
    scene = Scene()
    spec = {"deduplicationId": "one", "redrive": 1}
    scene.see("holder", admitted=True, spec={"deduplicationId": "one"})
    uid = scene.see("dead", phase="DeadLetter", completionTime=stamp(0), spec=spec)
    scene.observer.record_refusal(uid, 1)
    assert scene.observer.store.get(uid)
    [kept] = scene.observer.store.finished()
    assert kept.awaits_request
    ended: dict[str, Any] = {"completionTime": stamp(0), "spec": {**spec, "cancel": True}}
    scene.see("dead", phase="Cancelled", **ended)
    assert [record.uid for record in scene.observer.store.finished()] == [uid]


@pytest.mark.parametrize("fails", [False, True], ids=["in time", "quarantined"])
def test_a_finished_job_whose_rerun_is_pending_is_known_to_retention(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    scene = Scene()
    if fails:
        monkeypatch.setattr(scene.observer, "_decide", broken)
    uid = scene.see("done", phase="Succeeded", completionTime=stamp(-50), spec={"rerun": 1})
    [kept] = scene.observer.store.finished()
    assert (kept.uid, kept.awaits_request) == (uid, True)
    monkeypatch.undo()
    scene.see("done", phase="Succeeded", completionTime=stamp(-50), reruns=1, spec={"rerun": 1})
    [kept] = scene.observer.store.finished()
    assert not kept.awaits_request
    assert kept.reported_completion == to_epoch(stamp(-50), default=0.0)


def broken(*_: object, **__: object) -> None:
    raise TypeError("a fault of ours")


def test_a_postponed_job_is_left_alone_until_its_time_whatever_is_seen_of_it() -> None:
    scene = Scene()
    uid = scene.see(spec={"cancel": True})
    scene.observer.requeue_after(uid, 10)
    scene.see(spec={"cancel": True, "suspend": True})
    scene.observer.evaluate(uid)
    assert not scene.ear.wanted
    scene.pass_time(10)
    assert scene.ear.wanted == {uid}


def test_a_death_seen_as_it_happens_is_told_once_with_its_message() -> None:
    scene = Scene()
    scene.see(phase="Running", **running())
    for _ in range(2):
        scene.see(phase="DeadLetter", completionTime=stamp(0), message="no luck")
    assert scene.ear.deaths == ["job: no luck"]


def test_deaths_found_in_a_list_are_old_news() -> None:
    scene = Scene()
    scene.see(phase="Running", **running())
    scene.see(phase="DeadLetter", completionTime=stamp(0), just_changed=False)
    scene.see("other", phase="DeadLetter", completionTime=stamp(0), just_changed=False)
    assert scene.ear.deaths == []


def test_pausing_a_queue_stops_its_timeouts_and_resuming_starts_them_anew() -> None:
    scene = Scene()
    uid = scene.see(spec={"queueTimeoutSeconds": 10})
    meta = {"namespace": "ns", "name": "default"}
    scene.observer.queues.on_update({"metadata": meta, "spec": {"paused": True}})
    scene.pass_time(20)
    assert not scene.ear.wanted
    scene.observer.queues.on_delete("ns", "default")
    scene.pass_time(9)
    assert not scene.ear.wanted
    scene.pass_time(1)
    assert scene.ear.wanted == {uid}


def test_an_unknown_phase_is_left_to_who_knows_it() -> None:
    scene = Scene()
    scene.see(phase="Dreaming")
    assert len(scene.observer.store) == 0


def test_jobs_are_counted_by_namespace_queue_and_phase() -> None:
    scene = Scene()
    scene.see("a")
    scene.see("b", phase="Running", **running())
    scene.see("b", phase="Succeeded", completionTime=stamp(0))
    counts = {phase.value: n for (_, _, phase), n in scene.observer.store.counts.items()}
    assert counts == {"Queued": 1, "Succeeded": 1}


def test_the_pods_that_hold_jobs_are_known_until_their_jobs_have_left_them() -> None:
    scene = Scene()
    scene.see(phase="Running", **running())
    scene.see("queued")
    assert scene.observer.store.busy_pods() == {("ns", POD)}
    scene.see(phase="Queued")
    assert scene.observer.store.busy_pods() == set()


def test_a_change_of_a_large_queue_counts_who_runs_at_once_and_takes_the_rest_bit_by_bit() -> None:
    scene = Scene()
    uid = scene.see("runs", phase="Running", **running())
    for number in range(300):
        scene.see(f"waits-{number}")
    meta = {"namespace": "ns", "name": "default", "resourceVersion": "1000"}
    scene.observer.queues.on_update({"metadata": meta, "spec": {"maxConcurrency": 2}})
    hall = scene.observer.admission_cache.get(("ns", "default"))
    assert hall
    assert (set(hall.active), len(hall.pending)) == ({uid}, 0)
    scene.pass_time(0)
    assert len(hall.pending) == 300


def test_a_duplicate_seen_before_the_others_admission_is_looked_at_again() -> None:
    scene = Scene()
    scene.see("b", spec={"deduplicationId": "one"})
    uid = scene.see("a", spec={"deduplicationId": "one"})
    assert uid not in scene.ear.wanted
    scene.see("b", spec={"deduplicationId": "one"}, admitted=True)
    assert uid in scene.ear.wanted


def test_a_job_that_no_worker_of_a_limited_queue_knows_does_not_line_up_for_a_place() -> None:
    scene = Scene()
    meta = {"namespace": "ns", "name": "default", "resourceVersion": "7"}
    spec: JsonObject = {"maxConcurrency": 1, "unknownType": "DeadLetter"}
    scene.observer.queues.on_update({"metadata": meta, "spec": spec})
    hall = scene.observer.admission_cache.get(("ns", "default"))
    assert hall
    scene.see("early", spec={"type": "b"})
    assert len(hall.pending) == 1, "without a worker nobody can tell"
    scene.observer.worker_registry.on_lease_update(roll_lease("w", 0, types=["a"]))
    good, bad = scene.see("good", spec={"type": "a"}), scene.see("bad", spec={"type": "b"})
    assert good in hall.pending
    assert bad not in hall.pending
    scene.observer.worker_registry.on_lease_update(roll_lease("w2", 0, types=["b"]))
    scene.pass_time(6)
    assert bad in hall.pending


def test_a_job_beside_the_line_has_its_queue_timeout() -> None:
    scene = Scene()
    meta = {"namespace": "ns", "name": "default", "resourceVersion": "7"}
    scene.observer.queues.on_update({"metadata": meta, "spec": {"maxConcurrency": 1}})
    scene.observer.worker_registry.on_lease_update(roll_lease("w", 0, types=["a"]))
    known = scene.see("known", spec={"type": "a", "queueTimeoutSeconds": 20})
    unknown = scene.see("unknown", spec={"type": "b", "queueTimeoutSeconds": 20})
    for _ in range(5):
        scene.pass_time(5)
    assert scene.ear.wanted == {unknown}
    assert known not in scene.ear.wanted


def test_where_workers_may_not_be_watched_a_limit_alone_decides_how_many_get_a_place() -> None:
    scene = Scene()
    meta = {"namespace": "ns", "name": "default", "resourceVersion": "7"}
    scene.observer.queues.on_update({"metadata": meta, "spec": {"maxConcurrency": 3}})
    for number in range(5):
        scene.see(f"job-{number}")
    admissions = AdmissionRounds(scene.observer)

    def taken() -> int:
        plan = admissions.plan(("ns", "default"), scene.moment())
        assert plan
        admissions.requeue(plan)
        return len(plan.admitted)

    assert taken() == 3
    scene.observer.worker_registry.leases_watched = True
    assert taken() == 1, "one to try with, while no worker is there"
    scene.observer.worker_registry.on_lease_update(roll_lease("w", 0, types=["test"], slots=2))
    assert taken() == 3
