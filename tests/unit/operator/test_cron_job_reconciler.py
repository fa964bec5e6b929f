"""How a decision about a cron job is carried out, and what becomes of it if that fails."""

from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from asyncjob.deep_json import TruncatedObject
from asyncjob.errors import ForbiddenError, InvalidError, UnknownOutcomeError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.derived_jobs import run_name
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.names import (
    CRON_JOB_LABEL,
    CRON_JOB_UID_LABEL,
    JOBS,
    SCHEDULED_TIME_ANNOTATION,
    collection_path,
    cron_job_path,
    cron_job_status_path,
    job_path,
)
from asyncjob_operator.cache.scheduled_jobs import ScheduledJobCache
from asyncjob_operator.controllers.cron_job_evaluator import CronJobEvaluator
from asyncjob_operator.controllers.cron_job_reconciler import CronJobReconciler
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.controllers.workqueue import DelayingQueue, ItemBackoff
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.schedules.jobs import run_body
from asyncjob_operator.core.schedules.view import Run, read_cron_job
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from support.in_memory.fake_session import FakeSession
from support.objects.schedules import raw_cron, seconds, settled
from support.parts.vitals import quarantine

PATH = cron_job_path("ns", "nightly")
STATUS = cron_job_status_path("ns", "nightly")
JOBS_PATH = collection_path("ns", JOBS)
UID = "uid-nightly"
RUN = "nightly-20261120t0300z"
RUN_PATH = job_path("ns", RUN)
EARLIER = "nightly-20261120t0200z"
RUN_TWO = Run(run_name("nightly", int(seconds("2026-11-20T02:00"))), 1795140000)


def written_by(_: JobView) -> float:
    """Return when each job is seen."""
    return seconds("2026-11-20T03:00:01")


class CronJobReconcilerHarness:
    """An actor on a fake API server, at three in the morning."""

    def __init__(self, **spec: Any) -> None:
        self.session, self.children, self.metrics = (
            FakeSession(),
            ScheduledJobCache(),
            OperatorMetrics(),
        )
        self.wanted: list[str] = []
        self.leads, self.later = True, 0.0
        session = cast("KubeSession", self.session)
        self.recorder = EventRecorder(session, "me", self.now, self.metrics, quarantine())
        self.schedules = CronJobEvaluator(
            "me",
            self.children,
            self.now,
            self.wanted.append,
            delaying_queue=DelayingQueue(),
            quarantine=quarantine(),
        )
        self.actor = CronJobReconciler(
            session,
            self.schedules,
            backoff=ItemBackoff(1.0, 60.0),
            events=self.recorder,
            metrics=self.metrics,
            leads=lambda: self.leads,
            on_job=self.saw_job,
            clock=lambda: self.now().monotonic,
        )
        cron = raw_cron(status=settled("2026-11-20T02:00"), **spec)
        self.schedules.on_update(self.session.put(PATH, cron))

    def now(self) -> Now:
        return Now(1000.0 + self.later, seconds("2026-11-20T03:00:01") + self.later)

    def saw_job(self, obj: JsonObject) -> None:
        self.children.on_update(read_job(obj), obj, written_by)

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.session.objects[PATH]["status"]
        return status

    @property
    def requests(self) -> list[str]:
        return [f"{method} {path}" for method, path, _ in self.session.requests]


async def test_a_run_costs_one_read_two_writes_to_the_schedule_and_its_creation() -> None:
    harness = CronJobReconcilerHarness()
    assert harness.wanted == [UID]
    await harness.actor.reconcile(UID)
    assert harness.requests == [
        f"GET {PATH}",
        f"PATCH {STATUS}",
        f"POST {JOBS_PATH}",
        f"PATCH {STATUS}",
    ]
    assert harness.session.objects[RUN_PATH]["spec"]["type"] == "test"
    assert "reserved" not in harness.status
    assert harness.status["activeCount"] == 1


async def test_who_does_not_lead_writes_nothing() -> None:
    harness = CronJobReconcilerHarness()
    harness.leads = False
    await harness.actor.reconcile(UID)
    assert harness.session.writes == []


async def test_who_loses_leadership_after_reserving_creates_nothing() -> None:
    harness = CronJobReconcilerHarness()

    def lose(path: str) -> None:
        harness.leads = path != STATUS

    harness.session.before_write = lose
    await harness.actor.reconcile(UID)
    assert RUN_PATH not in harness.session.objects
    assert [run["name"] for run in harness.status["reserved"]["runs"]] == [RUN]


async def test_a_run_whose_name_another_job_has_is_given_up_and_said_so() -> None:
    harness = CronJobReconcilerHarness()
    harness.session.put(RUN_PATH, {"metadata": {"name": RUN}, "spec": {}, "status": {}})
    await harness.actor.reconcile(UID)
    assert (harness.status["reason"], harness.status["missed"]) == ("NameTaken", 1)
    assert "reserved" not in harness.status


async def test_a_run_made_by_a_schedule_of_the_same_name_before_counts_as_made() -> None:
    harness = CronJobReconcilerHarness()
    meta = {
        "name": RUN,
        "namespace": "ns",
        "uid": "job",
        "creationTimestamp": "2026-11-20T03:00:00Z",
        "labels": {CRON_JOB_LABEL: "nightly", CRON_JOB_UID_LABEL: "an-older-one"},
        "annotations": {SCHEDULED_TIME_ANNOTATION: "2026-11-20T03:00:00.000Z"},
    }
    harness.session.put(RUN_PATH, {"metadata": meta, "spec": {"type": "x"}, "status": {}})
    await harness.actor.reconcile(UID)
    assert harness.status["reason"] == "Scheduled"
    assert "reserved" not in harness.status


def run_in_the_way() -> Any:
    """Return an unfinished job of the schedule."""
    meta = {
        "name": EARLIER,
        "namespace": "ns",
        "uid": "earlier",
        "resourceVersion": "1",
        "creationTimestamp": "2026-11-20T02:00:00Z",
        "labels": {CRON_JOB_UID_LABEL: UID},
    }
    return {"metadata": meta, "spec": {"type": "test"}, "status": {"phase": "Queued"}}


async def test_forbid_gives_way_to_no_run_that_a_live_read_does_not_show() -> None:
    harness = CronJobReconcilerHarness(concurrencyPolicy="Forbid")
    harness.session.fail("POST", JOBS_PATH, UnknownOutcomeError())
    await harness.actor.reconcile(UID)
    harness.session.failures.clear()
    harness.saw_job(run_in_the_way())  # it is gone, and the watch has not told
    assert harness.wanted[-1] == UID
    await harness.actor.reconcile(UID)
    assert RUN_PATH in harness.session.objects
    assert "reserved" not in harness.status


async def test_forbid_gives_way_to_no_other_job_by_the_name_of_a_run() -> None:
    harness = CronJobReconcilerHarness(concurrencyPolicy="Forbid")
    harness.session.fail("POST", JOBS_PATH, UnknownOutcomeError())
    await harness.actor.reconcile(UID)
    harness.session.failures.clear()
    harness.saw_job(run_in_the_way())  # it is gone, and a cron job of another UID has run since
    other = run_in_the_way()
    other["metadata"] |= {"uid": "newer", "labels": {CRON_JOB_UID_LABEL: "another"}}
    harness.session.put(job_path("ns", EARLIER), other)
    await harness.actor.reconcile(UID)
    assert RUN_PATH in harness.session.objects
    assert "reserved" not in harness.status
    reads = {path for method, path, _ in harness.session.requests if method == "GET"}
    assert reads == {PATH, RUN_PATH, job_path("ns", EARLIER)}, "and no list of the namespace"


async def test_forbid_asks_once_about_a_run_that_is_in_the_way_indeed() -> None:
    harness = CronJobReconcilerHarness(concurrencyPolicy="Forbid")
    harness.session.fail("POST", JOBS_PATH, UnknownOutcomeError())
    await harness.actor.reconcile(UID)
    harness.session.failures.clear()
    harness.session.put(job_path("ns", EARLIER), run_in_the_way())
    harness.saw_job(run_in_the_way())
    await harness.actor.reconcile(UID)
    assert RUN_PATH not in harness.session.objects
    asked = len(harness.requests)
    harness.wanted.clear()
    harness.schedules.evaluate(UID)
    assert harness.wanted == []
    assert len(harness.requests) == asked


async def test_a_template_that_the_api_server_refuses_does_not_stop_the_schedule() -> None:
    harness = CronJobReconcilerHarness()
    harness.session.fail("POST", JOBS_PATH, InvalidError("metadata.labels: bad", status=422))
    await harness.actor.reconcile(UID)
    assert (harness.status["reason"], harness.status["missed"]) == ("JobRefused", 1)
    assert "metadata.labels" in harness.status["message"]
    assert "reserved" not in harness.status


async def test_a_template_too_deep_to_be_written_leaves_its_runs_out_with_the_reason() -> None:
    payload: Any = 1
    for _ in range(300):
        payload = [payload]
    harness = CronJobReconcilerHarness(jobTemplate={"spec": {"type": "test", "payload": payload}})
    await harness.actor.reconcile(UID)
    assert (harness.status["reason"], harness.status["missed"]) == ("JobRefused", 1)
    assert "spec.payload is nested too deeply to be written" in harness.status["message"]
    assert "reserved" not in harness.status
    assert RUN_PATH not in harness.session.objects


async def test_of_a_template_that_was_not_read_as_a_whole_no_run_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = CronJobReconcilerHarness()
    read, write = harness.session.get, harness.session.merge_patch

    async def read_in_part(path: str) -> Any:
        return TruncatedObject(await read(path))

    async def write_and_read_in_part(path: str, body: Any) -> Any:
        return TruncatedObject(await write(path, body))

    monkeypatch.setattr(harness.session, "get", read_in_part)
    monkeypatch.setattr(harness.session, "merge_patch", write_and_read_in_part)
    await harness.actor.reconcile(UID)
    assert harness.status["reason"] == "JobRefused"
    assert "read as a whole" in harness.status["message"]
    assert RUN_PATH not in harness.session.objects


@pytest.mark.parametrize("error", [ForbiddenError(status=403), UnknownOutcomeError()])
async def test_a_run_that_could_not_be_created_for_now_stays_reserved(error: Exception) -> None:
    harness = CronJobReconcilerHarness()
    harness.session.fail("POST", JOBS_PATH, error)
    await harness.actor.reconcile(UID)
    assert [run["name"] for run in harness.status["reserved"]["runs"]] == [RUN]
    harness.session.failures.clear()
    await harness.actor.reconcile(UID)
    assert RUN_PATH in harness.session.objects
    assert "reserved" not in harness.status


async def test_a_schedule_that_is_gone_is_forgotten() -> None:
    harness = CronJobReconcilerHarness()
    del harness.session.objects[PATH]
    await harness.actor.reconcile(UID)
    assert harness.schedules.names_in(None) == []
    assert harness.session.writes == []


async def test_a_schedule_made_again_under_the_name_is_left_to_its_own_turn() -> None:
    harness = CronJobReconcilerHarness()
    harness.session.objects[PATH]["metadata"] |= {"uid": "another"}
    await harness.actor.reconcile(UID)
    assert harness.session.writes == []


async def test_a_schedule_made_again_is_not_forgotten_for_its_predecessor() -> None:
    harness = CronJobReconcilerHarness()
    another: Any = harness.session.put(PATH, harness.session.objects[PATH])
    another["metadata"]["uid"] = "another"
    read = harness.session.get

    async def seen_meanwhile(path: str, params: Any = None) -> Any:
        answer = await read(path, params)
        harness.schedules.on_update(another)
        return answer

    harness.session.get = seen_meanwhile  # type: ignore[method-assign]  # the watch is quicker
    await harness.actor.reconcile(UID)
    assert harness.schedules.locate(UID) is None
    assert harness.schedules.locate("another") is not None


async def test_somebody_quicker_costs_a_conflict_and_nothing_else() -> None:
    harness = CronJobReconcilerHarness()

    def quicker(path: str) -> None:
        harness.session.before_write = lambda _path: None
        harness.session.put(PATH, harness.session.objects[PATH])

    harness.session.before_write = quicker
    await harness.actor.reconcile(UID)
    assert RUN_PATH not in harness.session.objects
    await harness.actor.reconcile(UID)
    assert RUN_PATH in harness.session.objects


def test_a_schedule_that_cannot_be_read_does_not_stop_the_others() -> None:
    harness = CronJobReconcilerHarness()
    odd = raw_cron("odd", concurrencyPolicy="Perhaps")
    harness.schedules.on_update(odd)
    harness.schedules.on_update(
        raw_cron(
            "far", status=settled("2026-11-20T02:00") | {"settledTime": "9999-12-31T23:59:59Z"}
        )
    )
    harness.schedules.evaluate(UID)
    assert harness.wanted[-1] == UID
    assert ("ns", "odd") not in harness.schedules.names_in("ns")


def test_jobs_of_no_schedule_are_not_kept_and_heartbeats_disturb_nobody() -> None:
    looked: list[tuple[str, str]] = []
    children = ScheduledJobCache()
    children.add_listener(looked.append)
    meta: dict[str, Any] = {"name": "j", "namespace": "ns", "uid": "j", "resourceVersion": "1"}
    plain = {"metadata": meta, "spec": {}, "status": {"phase": "Queued"}}
    children.on_update(read_job(plain), plain, written_by)
    assert looked == []
    ours = {**plain, "metadata": {**meta, "labels": {CRON_JOB_UID_LABEL: "c"}}}
    children.on_update(read_job(ours), ours, written_by)
    renewed = {**ours, "metadata": {**ours["metadata"], "resourceVersion": "2"}}
    children.on_update(read_job(renewed), renewed, written_by)
    assert looked == [("ns", "c")]
    assert [one.version for one in children.jobs_of(("ns", "c"))] == ["2"]
    children.on_delete("j")
    assert looked == [("ns", "c"), ("ns", "c")]
    assert children.jobs_of(("ns", "c")) == ()
    assert children.names(("ns", "c")) == {"j"}


async def test_overlaps_are_ruled_out_without_a_list_of_the_namespace() -> None:
    harness = CronJobReconcilerHarness(concurrencyPolicy="Forbid")
    await harness.actor.reconcile(UID)
    assert RUN_PATH in harness.session.objects
    reads = {path for method, path, _ in harness.session.requests if method == "GET"}
    assert reads == {PATH, RUN_PATH}


def _put_run_that_only_the_status_names(
    harness: CronJobReconcilerHarness, *, settled_at: str
) -> str:
    """Store a run that no watch has shown, with a status that names it; return the run's name."""
    name = run_name("nightly", int(seconds("2026-11-20T02:00")))
    schedule = harness.session.objects[PATH]
    made = run_body(read_cron_job(schedule), schedule, RUN_TWO)
    meta = {
        **cast("Any", made)["metadata"],
        "uid": "unseen",
        "creationTimestamp": "2026-11-20T02:00:00Z",
    }
    harness.session.put(job_path("ns", name), {**made, "metadata": meta, "status": {}})
    status = settled(settled_at, active=[{"name": name, "uid": "unseen"}], activeCount=1)
    harness.schedules.on_update(harness.session.put(PATH, {**schedule, "status": status}))
    return name


async def test_a_run_that_only_the_status_knows_of_keeps_the_next_from_starting() -> None:
    harness = CronJobReconcilerHarness(concurrencyPolicy="Forbid")
    earlier = _put_run_that_only_the_status_names(harness, settled_at="2026-11-20T02:00")
    await harness.actor.reconcile(UID)
    assert RUN_PATH not in harness.session.objects
    assert (harness.status["reason"], harness.status["missed"]) == ("LeftOut", 1)
    assert [one["name"] for one in harness.status["active"]] == [earlier]


async def test_an_active_run_is_not_taken_off_by_who_has_never_seen_it() -> None:
    harness = CronJobReconcilerHarness(concurrencyPolicy="Forbid")
    earlier = _put_run_that_only_the_status_names(harness, settled_at="2026-11-20T03:00")
    await harness.actor.reconcile(UID)
    assert [one["name"] for one in harness.status["active"]] == [earlier]
    del harness.session.objects[job_path("ns", earlier)]
    harness.schedules.evaluate(UID)
    await harness.actor.reconcile(UID)
    assert "active" not in harness.status
    assert harness.status["activeCount"] == 0


@pytest.mark.parametrize("policy", ["Allow", "Forbid"])
async def test_a_quota_that_gives_way_late_is_not_followed_by_a_burst(policy: str) -> None:
    harness = CronJobReconcilerHarness(
        schedule="* * * * *",
        misfirePolicy="Skip",
        startingDeadlineSeconds=10,
        concurrencyPolicy=policy,
    )
    harness.session.fail("POST", JOBS_PATH, ForbiddenError("exceeded quota", status=403))
    with capture_logs() as logs:
        for second in range(1, 600, 7):
            harness.later = float(second)
            harness.schedules.evaluate(UID)
            await harness.actor.reconcile(UID)
    assert sum(line["event"] == "cron job write refused" for line in logs) <= 12
    assert len(harness.status.get("reserved", {}).get("runs", [])) <= 1
    harness.session.failures.clear()
    before = len(harness.session.objects)
    harness.later = 600.0
    await harness.actor.reconcile(UID)
    assert len(harness.session.objects) <= before + 1
    assert harness.status["missed"] >= 8


async def test_a_run_that_was_created_without_an_answer_is_not_given_up() -> None:
    harness = CronJobReconcilerHarness(misfirePolicy="Skip", startingDeadlineSeconds=10)
    create = harness.session.create

    async def unanswered(path: str, body: Any, params: Any = None) -> Any:
        await create(path, body, params)
        raise UnknownOutcomeError("no answer")

    harness.session.create = unanswered  # type: ignore[method-assign]  # the answer gets lost
    await harness.actor.reconcile(UID)
    harness.later = 60.0
    harness.session.create = create  # type: ignore[method-assign]
    await harness.actor.reconcile(UID)
    assert "reserved" not in harness.status
    assert harness.status.get("missed", 0) == 0
