"""How one decision is carried to the API server, and what becomes of it if that fails."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from asyncjob.deep_json import TruncatedObject
from asyncjob.errors import ForbiddenError, InvalidError, UnknownOutcomeError
from asyncjob.kube import KubeSession
from asyncjob.names import (
    COMPONENT_LABEL,
    JOBS,
    WORKER_COMPONENT,
    collection_path,
    job_path,
    job_status_path,
)
from asyncjob_operator.components import cache_updates
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.controllers.job_reconciler import JobReconciler
from asyncjob_operator.controllers.preconditions import PreconditionChecker
from asyncjob_operator.controllers.workqueue import ItemBackoff
from asyncjob_operator.core.decision import ChildrenFinished, ContainerDown, TypeUnserved
from asyncjob_operator.core.now import Now, to_epoch
from asyncjob_operator.core.options import DecisionOptions
from asyncjob_operator.kube.clock import current_time, monotonic
from asyncjob_operator.kube.paths import leases_path, pods_path
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.in_memory.fake_session import FakeSession
from support.objects.snapshots import POD, POD_UID, raw, roll_lease, running, stamp
from support.parts.callbacks import ignore
from support.parts.evaluation import evaluation
from support.parts.vitals import quarantine

JOB = job_path("ns", "job")
STATUS = job_status_path("ns", "job")
UID = "uid-job"


class JobReconcilerHarness:
    """An actor on a fake API server, with a list of the wanted instead of a dispatcher."""

    def __init__(self, time: Callable[[], Now] = current_time) -> None:
        self.session = FakeSession()
        self.leads = True
        self.recovered: list[tuple[str, str]] = []
        self.metrics = OperatorMetrics()
        session = cast("KubeSession", self.session)
        self.recorder = EventRecorder(session, "me", current_time, self.metrics, quarantine())
        made = self._made = evaluation(time, options=DecisionOptions(unknown_type_delay=0))
        self.observer, self.caches = made.evaluator, made.caches
        self.delaying_queue = made.delaying_queue
        updates = cache_updates(self.caches, self.observer, ignore, ignore)
        self.actor = JobReconciler(
            session,
            self.observer,
            preconditions=PreconditionChecker(session, updates, monotonic),
            backoff=ItemBackoff(1.0, 60.0),
            events=self.recorder,
            metrics=self.metrics,
            leads=lambda: self.leads,
            on_recovered=lambda *what: self.recovered.append(what),
            now=current_time,
        )

    @property
    def wanted(self) -> set[str]:
        return set(self._made.queued)

    def job(self, name: str = "job", **changes: Any) -> None:
        """Put a job onto the server and show it to the observer."""
        obj = self.session.put(job_path("ns", name), cast("Any", raw(name, **changes)))
        self.observer.on_update(obj, just_changed=True)

    def take_lease(self, obj: Any) -> None:
        """Show a worker's Lease to the observer."""
        self.caches.worker_pods.on_lease_update(obj)
        self.caches.worker_registry.on_lease_update(obj)

    async def act(self, uid: str = UID) -> None:
        """Act and look again, as the dispatcher does."""
        self._made.job_queue.discard(uid)
        await self.actor.reconcile(uid)
        self.observer.evaluate(uid)

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.session.objects[JOB]["status"]
        return status

    def outcome(self, outcome: str) -> float:
        samples = (s for m in self.metrics.writes.collect() for s in m.samples)
        wanted = (s.value for s in samples if s.labels.get("outcome") == outcome)
        return sum(value for value in wanted if value == int(value) and value < 1e6)


def registration_lease(identity: str) -> dict[str, Any]:
    """Return the Lease in which a process of the pod registers."""
    meta = {
        "namespace": "ns",
        "name": f"asyncjob-worker-{POD}",
        "annotations": {"asyncjob.dev/pod-uid": POD_UID},
    }
    return {"metadata": meta, "spec": {"holderIdentity": identity}}


@pytest.fixture
def harness() -> JobReconcilerHarness:
    return JobReconcilerHarness()


async def test_one_effect_is_one_write_exact_on_the_version_read(
    harness: JobReconcilerHarness,
) -> None:
    harness.job(spec={"cancel": True})
    read = harness.session.objects[JOB]["metadata"]["resourceVersion"]
    await harness.act()
    [(method, path, body)] = harness.session.writes
    assert (method, path) == ("PATCH", STATUS)
    assert body["metadata"] == {"resourceVersion": read}
    assert harness.status["phase"] == "Cancelled"
    assert not harness.wanted


async def test_a_job_that_changed_meanwhile_is_judged_again_and_left_alone(
    harness: JobReconcilerHarness,
) -> None:
    harness.job(spec={"cancel": True})
    assert harness.wanted == {UID}
    harness.session.put(JOB, cast("Any", raw(phase="Cancelled", completionTime=stamp(0))))
    await harness.act()
    assert harness.session.writes == []


async def test_a_retry_that_changed_meanwhile_is_read_after_one_conflict_and_left_alone(
    harness: JobReconcilerHarness,
) -> None:
    harness.job(phase="Retrying", retryDelaySeconds=0.0, nextAttemptTime=stamp(0))
    assert harness.wanted == {UID}
    harness.session.put(JOB, cast("Any", raw(phase="Cancelled", completionTime=stamp(0))))
    await harness.act()
    assert harness.outcome("conflict") == 1
    await harness.act()
    assert [method for method, _, _ in harness.session.requests] == ["PATCH", "GET"]
    assert harness.status["phase"] == "Cancelled"


async def test_jobs_of_a_lost_worker_take_one_request_each_to_be_queued_again(
    harness: JobReconcilerHarness,
) -> None:
    harness.session.put(f"{leases_path('ns')}/asyncjob-worker-{POD}", registration_lease("newest"))
    harness.caches.worker_pods.on_lease_update(registration_lease("newest"))
    earlier: Any = [{"time": stamp(5), "phase": "Queued", "attempt": 0}]
    policy = {**running(), "history": earlier}
    for name in ("a", "b", "c"):
        harness.job(name, phase="Running", **policy)
        await harness.act(f"uid-{name}")
        obj = harness.session.objects[job_path("ns", name)]
        assert (obj["status"]["phase"], obj["status"]["crashes"]) == ("Queued", 1)
        assert [entry["phase"] for entry in obj["status"]["history"]] == ["Queued", "Queued"]
    of_jobs = [method for method, path, _ in harness.session.requests if "/asyncjobs/" in path]
    assert of_jobs == ["PATCH"] * 3


async def test_a_second_crash_takes_a_request_to_be_taken_and_one_to_be_queued(
    harness: JobReconcilerHarness,
) -> None:
    harness.session.put(f"{leases_path('ns')}/asyncjob-worker-{POD}", registration_lease("newest"))
    harness.caches.worker_pods.on_lease_update(registration_lease("newest"))
    harness.job(phase="Running", **{**running(), "crashes": 1})
    await harness.act()
    assert harness.status["phase"] == "Retrying"
    due = {**harness.status, "nextAttemptTime": stamp(0), "retryDelaySeconds": 0.0}
    harness.job(**due)
    await harness.act()
    assert (harness.status["phase"], harness.status["crashes"]) == ("Queued", 2)


async def test_after_a_failed_write_a_job_is_read_before_it_is_written_again(
    harness: JobReconcilerHarness,
) -> None:
    harness.job(phase="Retrying", retryDelaySeconds=0.0, nextAttemptTime=stamp(0))
    harness.session.fail("PATCH", STATUS, UnknownOutcomeError("no answer"))
    await harness.act()
    harness.session.failures.clear()
    await harness.act()
    assert [method for method, _, _ in harness.session.requests] == ["PATCH", "GET", "PATCH"]


async def test_that_a_worker_was_replaced_is_confirmed_once_for_all_its_jobs(
    harness: JobReconcilerHarness,
) -> None:
    harness.session.put(f"{leases_path('ns')}/asyncjob-worker-{POD}", registration_lease("newest"))
    harness.caches.worker_pods.on_lease_update(registration_lease("newest"))
    for name in ("a", "b", "c"):
        harness.job(name, phase="Running", **running())
        await harness.act(f"uid-{name}")
    paths = [path for method, path, _ in harness.session.requests if method == "GET"]
    assert len([path for path in paths if "/leases/" in path]) == 1
    assert harness.outcome("done") == 3


async def test_a_lost_race_is_looked_at_again_at_once_and_then_with_pauses(
    harness: JobReconcilerHarness,
) -> None:
    harness.job(spec={"cancel": True})
    harness.session.before_write = lambda _path: harness.session.put(
        JOB, harness.session.objects[JOB]
    )
    for _ in range(2):
        await harness.act()
        assert harness.wanted == {UID}
    await harness.act()
    assert not harness.wanted
    assert harness.outcome("conflict") == 3


async def test_a_lost_race_requeues_the_job_by_itself(harness: JobReconcilerHarness) -> None:
    harness.job(spec={"cancel": True})
    harness.session.before_write = lambda _path: harness.session.put(
        JOB, harness.session.objects[JOB]
    )
    await harness.actor.reconcile(UID)
    assert harness.delaying_queue.pop_due(current_time().monotonic, 10) == [UID]


@pytest.mark.parametrize(
    "error", [UnknownOutcomeError("no answer"), ForbiddenError(status=403), InvalidError("a rule")]
)
async def test_a_failed_write_is_tried_again_later_not_at_once(
    harness: JobReconcilerHarness, error: Exception
) -> None:
    harness.job(spec={"cancel": True})
    harness.session.fail("PATCH", STATUS, error)
    await harness.act()
    assert not harness.wanted
    assert len(harness.delaying_queue) == 1
    later = current_time().monotonic + 61
    assert harness.delaying_queue.pop_due(later, 10) == [UID]
    harness.observer.evaluate(UID)
    assert harness.wanted == {UID}


async def test_an_answer_that_never_came_may_have_been_a_success(
    harness: JobReconcilerHarness,
) -> None:
    harness.job(spec={"cancel": True})
    done = raw(phase="Cancelled", completionTime=stamp(0), spec={"cancel": True})
    harness.session.before_write = lambda _path: harness.session.put(JOB, cast("Any", done))
    harness.session.fail("PATCH", STATUS, UnknownOutcomeError("no answer"))
    await harness.act()
    await harness.act()
    assert len(harness.session.writes) == 1


async def test_a_job_that_is_gone_is_forgotten(harness: JobReconcilerHarness) -> None:
    harness.job(spec={"cancel": True})
    del harness.session.objects[JOB]
    await harness.act()
    assert UID not in harness.caches.store


async def test_another_job_of_the_same_name_is_not_touched(harness: JobReconcilerHarness) -> None:
    harness.job(spec={"cancel": True})
    harness.session.objects[JOB]["metadata"]["uid"] = "another"
    await harness.act()
    assert harness.session.writes == []
    assert UID not in harness.caches.store


async def test_who_does_not_lead_writes_nothing_and_keeps_the_job_in_mind(
    harness: JobReconcilerHarness,
) -> None:
    harness.leads = False
    harness.job(spec={"cancel": True})
    await harness.act()
    assert harness.session.writes == []
    assert harness.wanted == {UID}


async def test_a_replaced_worker_is_confirmed_by_a_live_read_and_the_cache_corrected(
    harness: JobReconcilerHarness,
) -> None:
    held = running()
    held["lease"]["worker"] = "newest"
    harness.session.put(f"{leases_path('ns')}/asyncjob-worker-{POD}", registration_lease("newest"))
    harness.caches.worker_pods.on_lease_update(registration_lease("stale"))
    harness.job(phase="Running", **held)
    assert harness.wanted == {UID}
    await harness.act()
    assert harness.session.writes == []
    assert harness.outcome("disproved") == 1
    harness.observer.evaluate(UID)
    assert not harness.wanted


def killed(harness: JobReconcilerHarness, **state: Any) -> None:
    """Put the worker's pod, whose container was killed."""
    last = {"terminated": {"exitCode": 137, "finishedAt": stamp(30)}}
    container = {"name": "worker", "lastState": last, "state": state}
    status = {"phase": "Running", "containerStatuses": [container]}
    pod = {"metadata": {"uid": POD_UID}, "spec": {}, "status": status}
    harness.session.put(f"{pods_path('ns')}/{POD}", pod)


async def test_a_container_is_down_only_if_a_live_read_says_so(
    harness: JobReconcilerHarness,
) -> None:
    verify = harness.actor._preconditions.verify
    proof = ContainerDown("ns", POD, POD_UID, to_epoch(stamp(30), default=0.0), 137)
    assert not await verify(proof)
    killed(harness, waiting={"reason": "CrashLoopBackOff"})
    assert await verify(proof)
    assert not await verify(replace(proof, pod_uid="another"))
    assert not await verify(replace(proof, exit_code=1))
    killed(harness, running={})
    assert not await verify(proof)
    assert harness.caches.worker_pods.pods_in("ns") == [("ns", POD)]


async def test_a_duplicate_is_cancelled_only_if_the_other_is_there_and_live(
    harness: JobReconcilerHarness,
) -> None:
    spec = {"deduplicationId": "one"}
    harness.job("first", admitted=True, spec=spec)
    harness.job(spec=spec)
    del harness.session.objects[job_path("ns", "first")]
    await harness.act()
    assert harness.session.writes == []
    assert "uid-first" not in harness.caches.store


def listing(types: list[str], renewed: str) -> dict[str, Any]:
    """Return the Lease of a live worker that lists types."""
    lease = registration_lease("newest")
    lease["metadata"]["labels"] = {
        "asyncjob.dev/queue": "default",
        COMPONENT_LABEL: WORKER_COMPONENT,
    }
    lease["metadata"]["annotations"]["asyncjob.dev/worker"] = json.dumps({"types": types})
    lease["spec"] |= {"leaseDurationSeconds": 60, "renewTime": renewed}
    return lease


@pytest.mark.parametrize(
    ("there", "given_up"), [(["other"], True), (["other", "test"], False), (None, False)]
)
async def test_a_type_counts_as_unknown_only_if_the_leases_there_are_say_so_too(
    harness: JobReconcilerHarness, there: list[str] | None, given_up: bool
) -> None:
    harness.caches.queues.on_update(
        {
            "metadata": {"namespace": "ns", "name": "default"},
            "spec": {"unknownType": "DeadLetter"},
        }
    )
    for renewed in ("1", "2"):
        harness.take_lease(listing(["other"], renewed))
    if there is not None:
        harness.session.put(f"{leases_path('ns')}/asyncjob-worker-{POD}", listing(there, "3"))
    harness.job()
    assert harness.wanted == {UID}
    await harness.act()
    assert (harness.status.get("reason") == "UnknownType") is given_up
    assert harness.outcome("disproved") == (0 if given_up else 1)


async def test_a_refusal_is_told_in_an_event_and_not_written(harness: JobReconcilerHarness) -> None:
    spec = {"deduplicationId": "one"}
    harness.job("first", admitted=True, spec=spec)
    harness.job(phase="DeadLetter", completionTime=stamp(0), spec={**spec, "redrive": 1})
    for _ in range(2):
        await harness.act()
    assert harness.session.writes == []
    assert harness.recorder._queue.qsize() == 1
    assert not harness.wanted


async def test_a_rerun_whose_creation_was_not_acknowledged_is_not_created_twice(
    harness: JobReconcilerHarness,
) -> None:
    harness.job(phase="Succeeded", completionTime=stamp(0), spec={"rerun": 1})
    harness.session.fail("PATCH", STATUS, UnknownOutcomeError("no answer"))
    await harness.act()
    harness.session.failures.clear()
    harness.observer.delay_rerun("uid-job", 0.0)
    await harness.act()
    assert harness.status.get("reruns", 0) == 1
    assert job_path("ns", "job-r1") in harness.session.objects
    assert harness.recorder._queue.qsize() == 0


async def test_a_write_that_changes_nothing_is_not_repeated_in_a_hurry(
    harness: JobReconcilerHarness,
) -> None:
    harness.job(spec={"cancel": True})

    async def ignore(_path: str, _body: Any) -> Any:
        return harness.session.objects[JOB]

    harness.session.merge_patch = ignore  # type: ignore[assignment, method-assign]  # a deaf server
    await harness.act()
    assert not harness.wanted


async def test_a_recovery_is_timed_from_the_last_heartbeat_and_told_to_who_counts(
    harness: JobReconcilerHarness,
) -> None:
    harness.session.put(f"{leases_path('ns')}/asyncjob-worker-{POD}", registration_lease("newest"))
    harness.caches.worker_pods.on_lease_update(registration_lease("newest"))
    harness.job(phase="Running", **running())
    await harness.act()
    samples = {
        sample.name: sample.value
        for metric in harness.metrics.recovery_seconds.collect()
        for sample in metric.samples
    }
    assert samples["asyncjob_operator_recovery_seconds_count"] == 1
    assert 0 < samples["asyncjob_operator_recovery_seconds_sum"] < 5
    assert harness.recovered == [("ns", "WorkerCrashed")]


async def test_a_rerun_that_a_quota_refuses_holds_nothing_else_up(
    harness: JobReconcilerHarness,
) -> None:
    harness.job(spec={"rerun": 1})
    harness.session.fail("POST", collection_path("ns", JOBS), ForbiddenError("quota", status=403))
    await harness.act()
    assert not harness.wanted
    harness.job(spec={"rerun": 1, "cancel": True})
    assert harness.wanted == {UID}
    await harness.act()
    assert harness.status["phase"] == "Cancelled"
    harness.session.failures.clear()
    harness.observer.delay_rerun(UID, 0.0)
    harness.observer.evaluate(UID)
    assert harness.wanted == {UID}
    await harness.act()
    assert harness.status.get("reruns", 0) == 1
    harness.observer.evaluate(UID)
    assert harness.wanted == set()


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


async def test_a_rerun_too_deep_to_be_written_is_refused_and_holds_nothing_else_up(
    harness: JobReconcilerHarness,
) -> None:
    deep = {"rerun": 1, "payload": nested(300)}
    harness.job(spec=deep)
    await harness.act()
    assert harness.outcome("refused") == 1
    event = harness.recorder._queue.get_nowait()
    assert (event.name, event.reason) == ("job", "RerunRefused")
    assert event.message.startswith("not rerun: spec.payload is nested too deeply")
    harness.observer.delay_rerun(UID, 0.0)
    await harness.act()
    assert harness.outcome("refused") == 2
    assert harness.recorder._queue.empty(), "told once"
    harness.job(spec={**deep, "cancel": True})
    await harness.act()
    assert harness.status["phase"] == "Cancelled"


def reads_cut_at(harness: JobReconcilerHarness, levels: int) -> None:
    """Have each job read as if it had been cut at this many levels."""
    whole = harness.session.get

    async def cut(path: str, params: Any = None) -> Any:
        found = TruncatedObject(await whole(path, params))
        found.levels = levels
        return found

    harness.session.get = cut  # type: ignore[method-assign]  # as of a job nested too deeply


async def test_of_a_job_that_was_not_read_as_a_whole_no_rerun_is_made(
    harness: JobReconcilerHarness,
) -> None:
    harness.job(spec={"rerun": 1, "payload": nested(29)})
    reads_cut_at(harness, 31)
    await harness.act()
    assert list(harness.session.objects) == [JOB]
    event = harness.recorder._queue.get_nowait()
    assert event.reason == "RerunRefused"
    assert "nested too deeply to be read as a whole (31 levels were)" in event.message


async def test_a_signal_of_any_depth_is_not_in_the_way_of_a_rerun(
    harness: JobReconcilerHarness,
) -> None:
    deep = {"go": {"sentBy": "ada", "payload": nested(27)}}
    harness.job(spec={"rerun": 1, "payload": nested(28), "signals": deep})
    reads_cut_at(harness, 31)
    await harness.act()
    assert harness.status.get("reruns", 0) == 1
    [spec] = [one["spec"] for path, one in harness.session.objects.items() if path != JOB]
    assert spec["payload"] == nested(28)
    assert "signals" not in spec


async def test_what_a_rule_refuses_of_a_job_is_told_in_one_event(
    harness: JobReconcilerHarness,
) -> None:
    harness.job(spec={"cancel": True})
    harness.session.fail("PATCH", STATUS, InvalidError("durationSeconds", status=422))
    for _ in range(3):
        await harness.act()
    event = harness.recorder._queue.get_nowait()
    assert (event.name, event.reason) == ("job", "WriteRefused")
    assert "durationSeconds" in event.message
    assert harness.recorder._queue.empty()


async def test_what_a_rule_refuses_is_said_once_and_tried_ever_more_seldom(
    harness: JobReconcilerHarness,
) -> None:
    harness.job(spec={"cancel": True})
    harness.session.fail("PATCH", STATUS, InvalidError("durationSeconds", status=422))
    pauses = []
    with capture_logs() as logs:
        for _ in range(14):
            await harness.act()
            pauses.append(
                (harness.delaying_queue._heap.next_time() or 0.0) - current_time().monotonic
            )
            harness.delaying_queue.pop_due(float("inf"), 10)
    assert [line["event"] for line in logs if "refused" in line["event"]] == [
        "write refused by a rule"
    ]
    assert harness.outcome("refused") == 14
    assert pauses[0] < 2
    assert 200 < pauses[-1] <= 600
    assert pauses[6] > 4 * pauses[2]


async def test_many_dead_letters_of_unknown_types_cost_one_list_of_workers(
    harness: JobReconcilerHarness,
) -> None:
    listed = leases_path("ns")
    for second in range(3):
        harness.session.put(f"{listed}/w", cast("Any", roll_lease(renewed=second)))
    confirmation = harness.actor._preconditions
    proof = TypeUnserved("ns", "default", "b")
    assert all([await confirmation.verify(proof) for _ in range(50)])
    assert not await confirmation.verify(TypeUnserved("ns", "default", "a"))
    assert [path for _, path, _ in harness.session.requests] == [listed]


async def test_children_are_not_listed_once_the_watch_has_come_past_their_parents_end(
    harness: JobReconcilerHarness,
) -> None:
    harness.job(phase="Succeeded", completionTime=stamp(0))
    confirmation = PreconditionChecker(
        cast("KubeSession", harness.session),
        cache_updates(harness.caches, harness.observer, ignore, ignore),
        monotonic,
    )
    proof = ChildrenFinished("ns", (UID,), ())
    assert await confirmation.verify(proof)
    assert [path for _, path, _ in harness.session.requests] == [collection_path("ns", JOBS)]
    harness.session.requests.clear()
    harness.caches.watch_position.observe(harness.session.objects[JOB])
    assert await confirmation.verify(proof)
    assert harness.session.requests == []


async def test_a_wait_that_is_over_by_the_api_servers_clock_is_over_as_it_is_written() -> None:
    """The machine's clock is four seconds behind that: within what counts as equal."""

    def behind() -> Now:
        return replace(current_time(), wall=to_epoch(stamp(8), default=0.0), ahead=-4.0)

    harness = JobReconcilerHarness(behind)
    nap = {"kind": "Sleep", "key": "nap", "until": stamp(10)}
    kept = {"nap": {"kind": "Sleep", "until": stamp(10)}}
    harness.job(phase="Scheduled", reason="Sleeping", waiting=[nap], waits=kept, attempt=1, parks=1)
    assert harness.wanted == {UID}
    await harness.act()
    assert (harness.status["phase"], harness.status["reason"]) == ("Queued", "WaitOver")
