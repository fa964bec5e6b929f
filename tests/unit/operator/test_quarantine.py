"""Whatever one object holds, others are acted on, and it is again once it is as it should be."""

import copy
from collections.abc import Iterator
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from asyncjob.kube import KubeSession, WatchEvent
from asyncjob_operator.cache.adapters import (
    InformerStore,
    PodCacheAdapter,
    QueueCacheAdapter,
    WorkerLeaseCacheAdapter,
)
from asyncjob_operator.controllers import job_evaluator as observer_module
from asyncjob_operator.controllers.cron_job_evaluator import CronJobEvaluator
from asyncjob_operator.controllers.retention import RemovalPace, RemovalPlanner, RetentionController
from asyncjob_operator.controllers.workqueue import DelayingQueue
from asyncjob_operator.core.decide import decide
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import RetentionOptions
from asyncjob_operator.telemetry.job_metrics import JobMetrics
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from asyncjob_operator.telemetry.quarantine import (
    INITIAL_PAUSE,
    MAX_PAUSE,
    Activity,
    ObjectKind,
    ObjectRef,
    Quarantine,
)
from support.in_memory.fake_session import FakeSession
from support.objects.builders import cron_job
from support.objects.snapshots import POD, POD_UID, at, raw, roll_lease, running, stamp
from support.parts.callbacks import ignore
from support.parts.evaluation import evaluation


def nest(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


NASTY: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 1e308, "", "x" * 10_000, "foreign-uid", [], {}, [None], [[]], [{}],
    "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z",
    "2026-02-30T00:00:00Z", "2026-01-01T00:00:00+99:00", "never", nest(550),
)  # fmt: skip


class QuarantineHarness:
    """All that looks at objects of tenants, with the clock in the test's hands."""

    def __init__(self) -> None:
        self.now, self.version, self.metrics = 0.0, 100, OperatorMetrics()
        self.quarantine = Quarantine(lambda: self.now, lambda _kind: None)
        job_metrics = JobMetrics(self.metrics.registry, lambda: True, lambda: self.now)
        self.evaluation = evaluation(
            self.moment,
            quarantine=self.quarantine,
            metrics=job_metrics,
        )
        self.observer, self.caches = self.evaluation.evaluator, self.evaluation.caches
        self.delaying_queue = self.evaluation.delaying_queue
        self.queue_stats = self.evaluation.queue_stats
        caches = self.caches
        self.due: set[str] = set()
        self.cron_delaying_queue = DelayingQueue()
        self.schedules = CronJobEvaluator(
            "me",
            caches.scheduled_jobs,
            self.moment,
            self.due.add,
            delaying_queue=self.cron_delaying_queue,
            quarantine=self.quarantine,
        )
        self.scopes = {
            "queue": InformerStore(QueueCacheAdapter(caches.queues), None, self.quarantine),
            "pod": InformerStore(PodCacheAdapter(caches.worker_pods), None, self.quarantine),
            "lease": InformerStore(
                WorkerLeaseCacheAdapter(caches.worker_pods, caches.worker_registry),
                None,
                self.quarantine,
            ),
        }
        self.sweep = RetentionController(
            cast("KubeSession", FakeSession()),
            RemovalPlanner(
                caches.store,
                queue_of=caches.queues.view,
                options=RetentionOptions(),
                is_needed=caches.dependency_graph.is_needed,
                feeds_parent=caches.dependency_graph.feeds_parent,
                now=self.moment,
                quarantine=self.quarantine,
            ),
            RemovalPace(rate=1e9, interval=60.0),
            now=self.moment,
            leads=lambda: True,
            record_event=lambda _event: None,
            metrics=self.metrics,
            quarantine=self.quarantine,
        )

    def moment(self) -> Now:
        return at(self.now)

    def take(self, kind: str, obj: Any) -> None:
        """Take an object as a new version."""
        self.version += 1
        obj = copy.copy(obj)
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.version)}
        if kind == "job":
            self.observer.on_update(obj, just_changed=True)
        elif kind == "cron":
            self.schedules.on_update(obj)
        else:
            self.scopes[kind].apply(WatchEvent("MODIFIED", obj))

    async def go_on(self) -> None:
        """Do all that time brings, once."""
        self.now += 200.0
        for uid in self.delaying_queue.pop_due(self.now, 1000):
            self.observer.evaluate(uid)
        for uid in self.cron_delaying_queue.pop_due(self.now, 1000):
            self.schedules.evaluate(uid)
        await self.queue_stats.changed_statuses()
        await self.sweep.run_once(on_progress=ignore)
        admissions = self.evaluation.admission_rounds()
        with self.quarantine.guard(ObjectRef(ObjectKind.QUEUE, "ns", "default"), Activity.ACT):
            admissions.unverified(("ns", "default"))
            admissions.plan(("ns", "default"), self.moment())

    def honest(self) -> str:
        """Have another tenant's job need something to be done, and return its uid."""
        obj: Any = raw("honest", spec={"cancel": True})
        obj["metadata"] |= {"namespace": "other", "uid": f"honest-{self.version}"}
        self.take("job", obj)
        return str(obj["metadata"]["uid"])


def job(name: str = "job", phase: str = "Queued", *, meta: Any = None, **more: Any) -> Any:
    obj: Any = raw(name, phase=phase, **more)
    obj["metadata"] |= meta or {}
    return obj


OWNED = {
    "manager": "asyncjob-worker",
    "operation": "Update",
    "subresource": "status",
    "time": stamp(0),
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:status": {}},
}
CRON_LABELS = {
    "asyncjob.dev/cron-job-uid": "cron-uid",
    "asyncjob.dev/cron-job": "nightly",
    "asyncjob.dev/parent": "parent-uid",
}
GATES = {
    "notBefore": stamp(-50),
    "notAfter": stamp(100),
    "deduplicationId": "d",
    "concurrencyKey": "k",
    "dependsOn": [{"name": "job-before", "outcome": "Any", "children": True}],
    "queueTimeoutSeconds": 60,
    "priority": 3,
}
STAY = {"lastTransitionTime": stamp(-5), "message": "waits", "reason": "Waiting"}
ENDING = {"terminated": {"finishedAt": stamp(-1), "exitCode": 1, "reason": "Error"}}

JOBS: dict[str, Any] = {
    "queued": job(spec={**GATES, "cancel": True}, meta={"labels": CRON_LABELS}, **STAY),
    "pending": job(phase="Pending", spec={**GATES, "cancel": True}, **STAY),
    "scheduled": job(phase="Scheduled", spec={**GATES, "cancel": True}, **STAY),
    "retrying": job(
        phase="Retrying",
        attempt=1, retries=1, claim="c", retryDelaySeconds=2.0, nextAttemptTime=stamp(2), **STAY,
    ),
    "running": job(
        phase="Running",
        **{**running(), "firstStartTime": stamp(0)}, **STAY,
    ),
    "dead": job(
        phase="DeadLetter",
        spec={"redrive": 1, "ttlSecondsAfterFinished": 9, "idempotencyKey": "i"},
        completionTime=stamp(0), meta={"managedFields": [OWNED]}, **STAY,
    ),
}  # fmt: skip
FINISHED = job(
    phase="Succeeded",
    completionTime=stamp(0),
    meta={"managedFields": [OWNED], "labels": CRON_LABELS},
    spec={"ttlSecondsAfterFinished": 900, "idempotencyKey": "i"},
    **STAY,
)
QUEUE: Any = {
    "metadata": {"namespace": "ns", "name": "default", "uid": "queue-uid"},
    "spec": {
        "paused": False,
        "maxConcurrency": 5,
        "maxConcurrencyPerKey": 2,
        "priorityAgeingSeconds": 60,
        "rateLimit": {"count": 5, "periodSeconds": 2},
        "unknownType": "DeadLetter",
        "defaults": {"queueTimeoutSeconds": 60, "cancelGraceSeconds": 5},
        "retention": {"maxAgeSeconds": 60, "maxFinished": 3, "minAgeSeconds": 0},
    },
    "status": {
        "reservations": [
            {"uid": "u", "name": "n", "queuedTime": stamp(0), "key": "k", "time": stamp(0)}
        ],
        "recentStarts": [{"time": stamp(0), "count": 1}],
        "counts": [{"phase": "Queued", "count": 1}],
        "oldestQueuedSeconds": 1,
        "conditions": [{"type": "Drained", "status": "False", "lastTransitionTime": stamp(0)}],
    },
}
POD_OBJECT: Any = {
    "metadata": {"namespace": "ns", "name": POD, "uid": POD_UID, "annotations": {"a": "b"}},
    "status": {
        "phase": "Running",
        "reason": "",
        "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "Evicted"}],
        "containerStatuses": [{"name": "worker", "state": ENDING, "lastState": ENDING}],
    },
}
LEASE = roll_lease(POD, slots=3, draining=False)
CRON: Any = cron_job("nightly")
CRON["metadata"] |= {"namespace": "ns", "uid": "cron-uid", "creationTimestamp": stamp(-9000)}
CRON["spec"] |= {
    "schedule": "* * * * *",
    "timeZone": "UTC",
    "jitterSeconds": 1,
    "startingDeadlineSeconds": 60,
    "misfirePolicy": "FireOnce",
    "misfireLimit": 3,
    "concurrencyPolicy": "Forbid",
    "trigger": 1,
    "suspend": False,
    "backfill": {"from": stamp(-8000), "to": stamp(-7000), "limit": 5, "maxActive": 1},
    "successfulJobsHistoryLimit": 1,
    "failedJobsHistoryLimit": 1,
}
CRON["status"] = {
    "settledTime": stamp(-600),
    "lastScheduleTime": stamp(-600),
    "claims": 1,
    "triggers": 0,
    "missed": 0,
    "observed": {"schedule": "* * * * *", "timeZone": "UTC", "suspend": False},
    "reserved": {"by": "me", "runs": [{"name": "r", "time": stamp(-60), "trigger": 1}]},
    "backfill": {
        "from": stamp(-8000), "to": stamp(-7000), "through": stamp(-7500),
        "total": 3, "created": 1, "completed": False,
    },
}  # fmt: skip

OURS = {"namespace", "name", "uid", "resourceVersion"}
"""What the API server alone writes, and what an object is known by."""

Path = tuple[str | int, ...]


def paths(value: Any, so_far: Path = ()) -> Iterator[Path]:
    """Return where something can be put in place of what is there."""
    if so_far:
        yield so_far
    if not isinstance(value, dict | list):
        return
    for key, inside in value.items() if isinstance(value, dict) else enumerate(value):
        if not (so_far == ("metadata",) and key in OURS):
            yield from paths(inside, (*so_far, key))


def with_value(obj: Any, path: Path, value: Any) -> Any:
    changed = copy.deepcopy(obj)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return changed


def everywhere(kind: str, name: str, obj: Any) -> list[Any]:
    return [
        pytest.param(kind, obj, path, id=f"{name}: {'.'.join(map(str, path))}")
        for path in paths(obj)
        if path != ("metadata",)
    ]


OBJECTS = [
    *(case for name, obj in JOBS.items() for case in everywhere("job", name, obj)),
    *everywhere("job", "finished", FINISHED),
    *everywhere("queue", "queue", QUEUE),
    *everywhere("pod", "pod", POD_OBJECT),
    *everywhere("lease", "lease", LEASE),
    *everywhere("cron", "schedule", CRON),
]


async def furnished() -> QuarantineHarness:
    """Return a harness in which something of each kind is there, and all is well."""
    harness = QuarantineHarness()
    for kind, obj in (("queue", QUEUE), ("pod", POD_OBJECT), ("lease", LEASE), ("cron", CRON)):
        harness.take(kind, obj)
    await harness.go_on()
    assert not harness.quarantine.counts_by_kind()
    return harness


@pytest.mark.parametrize(("kind", "obj", "path"), OBJECTS)
async def test_no_value_in_any_field_that_is_read_keeps_others_from_being_acted_on(
    kind: str, obj: Any, path: Path
) -> None:
    with capture_logs():  # a thousand tracebacks, which take their time
        harness = await furnished()
        for value in NASTY:
            harness.take(kind, with_value(obj, path, value))
            await harness.go_on()
            uid = harness.honest()
            assert uid in harness.evaluation.queued, value
            harness.observer.on_delete(uid)
            harness.take(kind, obj)
            await harness.go_on()
            assert not harness.quarantine.counts_by_kind(), value
            if kind == "cron":
                assert "cron-uid" in harness.due
                harness.due.clear()
            elif obj is FINISHED:
                assert [record.uid for record in harness.caches.store.finished()] == ["uid-job"]
            elif kind == "job":
                assert "uid-job" in harness.evaluation.queued, value
                harness.evaluation.job_queue.discard("uid-job")


def test_a_job_that_cannot_be_judged_is_judged_again_when_its_time_has_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness, fails = QuarantineHarness(), True

    def stumble(snapshot: Any, now: Now) -> Any:
        if fails and snapshot.job.name == "bad":
            raise RecursionError("of a kind that nobody has thought of")
        return decide(snapshot, now)

    monkeypatch.setattr(observer_module, "decide", stumble)
    with capture_logs() as logs:
        harness.take("job", raw("bad", spec={"cancel": True}))
        for _ in range(3):
            harness.observer.evaluate("uid-bad")
    assert [(entry["event"], entry["object"]) for entry in logs] == [
        ("object quarantined", "ns/bad")
    ]
    assert harness.quarantine.counts_by_kind() == {"AsyncJob": 1}
    assert harness.honest() in harness.evaluation.queued
    fails = False
    assert harness.delaying_queue.pop_due(INITIAL_PAUSE - 1, 10) == []
    harness.now = 2 * MAX_PAUSE
    [uid] = harness.delaying_queue.pop_due(harness.now, 10)
    harness.observer.evaluate(uid)
    assert "uid-bad" in harness.evaluation.queued
    assert not harness.quarantine.counts_by_kind()


def test_each_version_is_said_and_counted_once_and_rests_until_it_changes() -> None:
    counted: list[str] = []
    now = 0.0
    quarantine = Quarantine(lambda: now, counted.append)
    first, second = (ObjectRef(ObjectKind.QUEUE, "ns", "q", version) for version in ("9", "10"))

    def fail(one: ObjectRef) -> float:
        with quarantine.guard(one) as guard:
            raise ValueError
        assert guard.pause is not None
        return guard.pause

    with capture_logs() as logs:
        pauses = [fail(first) for _ in range(9)]
        assert quarantine.is_quarantined(first)
        assert not quarantine.is_quarantined(second)
        assert fail(second) == INITIAL_PAUSE
    assert (len(logs), counted) == (2, ["AsyncQueue", "AsyncQueue"])
    assert pauses[:2] == [INITIAL_PAUSE, 2 * INITIAL_PAUSE]
    assert pauses[-1] == MAX_PAUSE
    with quarantine.guard(first):
        pass
    assert quarantine.counts_by_kind() == {"AsyncQueue": 1}
    with quarantine.guard(second):
        pass
    assert not quarantine.counts_by_kind()


def test_what_was_done_badly_ends_with_the_same_done_well_or_with_another_version() -> None:
    quarantine = Quarantine(lambda: 0.0, lambda _kind: None)
    one = ObjectRef(ObjectKind.JOB, "ns", "j", "5")

    def fail() -> None:
        with quarantine.guard(one, Activity.ACT):
            raise ValueError

    fail()
    with quarantine.guard(one, Activity.OBSERVE):
        pass
    assert quarantine.counts_by_kind() == {"AsyncJob": 1}
    with quarantine.guard(one._replace(version="6"), Activity.OBSERVE):
        pass
    assert not quarantine.counts_by_kind()
    fail()
    with quarantine.guard(one, Activity.ACT):
        pass
    assert not quarantine.counts_by_kind()


def test_a_deleted_object_is_no_longer_quarantined_whoever_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreadable(_obj: object) -> None:
        raise ValueError("never")  # no value of a pod's field is known to do this

    harness = QuarantineHarness()
    monkeypatch.setattr("asyncjob_operator.cache.workers.read_pod", unreadable)
    bad: Any = raw("bad", phase="Unheard")
    harness.take("job", bad)
    harness.take("pod", POD_OBJECT)
    assert harness.quarantine.counts_by_kind() == {"AsyncJob": 1, "Pod": 1}
    harness.observer.on_delete_event(bad)
    harness.scopes["pod"].list_begins()
    harness.scopes["pod"].list_ends("9")
    assert not harness.quarantine.counts_by_kind()


def test_a_cancellation_is_no_failure_of_an_object() -> None:
    quarantine = Quarantine(lambda: 0.0, lambda _kind: None)
    with pytest.raises(KeyboardInterrupt), quarantine.guard(ObjectRef(ObjectKind.POD, "ns", "p")):
        raise KeyboardInterrupt
    assert not quarantine.counts_by_kind()
