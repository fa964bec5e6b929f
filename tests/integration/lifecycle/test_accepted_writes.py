"""What the pure functions produce, and what users may control, the API server accepts."""

from typing import Any

import pytest

from asyncjob.lifecycle import phase_change
from asyncjob.lifecycle.phase_change import Failure
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase, Reason
from asyncjob.names import (
    CRON_JOB_UID_LABEL,
    CRON_JOBS,
    JOBS,
    OPERATOR_LEASE,
    PARENT_LABEL,
    POD_UID_ANNOTATION,
    QUEUES,
    WORKER_LEASE_PREFIX,
    collection_path,
)
from support.driven import lives
from support.driven.fake_worker import renewal_fields
from support.driven.lives import Decide, Life
from support.forbidden import ForbiddenSetup
from support.forbidden.removals import (
    ADMINISTRATOR_WHO_DELETES,
    member,
    new_cron_job,
    new_queue,
)
from support.forbidden.sources import AUTHOR_RULE, SECRET
from support.objects.builders import at, cron_job, job, queue

pytestmark = pytest.mark.integration

LEASES = "apis/coordination.k8s.io/v1"
FINALIZES = {
    "apiGroups": ["asyncjob.dev"],
    "resources": [f"{JOBS}/finalizers"],
    "verbs": ["update"],
}
LARGE: Any = {"text": "x" * 250_000, "rows": list(range(1000))}


def by_operator(setup: ForbiddenSetup, life: Life, decide: Decide) -> dict[str, Any]:
    status: dict[str, Any] = life.move(decide, setup.operator).object()["status"]
    return status


def by_worker(setup: ForbiddenSetup, life: Life, decide: Decide) -> dict[str, Any]:
    status: dict[str, Any] = life.move(decide, setup.worker.client).object()["status"]
    return status


@pytest.mark.parametrize(
    "failure",
    [
        Failure("E", "Internal", "m"),
        Failure("E", "Internal", "m", retry_after=5.0),
        Failure("E", "Internal", "m", retry_after=5.0, reason=Reason.RETRY_REQUESTED),
        Failure("E", "Timeout", "m", reason=Reason.EXECUTION_TIMEOUT),
        Failure("E", "Validation", "m", permanent=True, reason=Reason.INVALID_PAYLOAD),
        Failure("E", "Internal", "m", permanent=True, reason=Reason.RESULT_REFUSED),
        Failure("E", "Internal", "m" * 9000, permanent=True),
    ],
    ids=lambda failure: f"{failure.reason}-{failure.retry_after}-{failure.permanent}",
)
def test_every_kind_of_failure(setup: ForbiddenSetup, failure: Failure) -> None:
    life = setup.life(Phase.RUNNING)
    by_worker(
        setup, life, lambda view: phase_change.fail(view, failure, now=at(), jitter_sample=0.9)
    )


@pytest.mark.parametrize(
    "reason",
    [
        Reason.LEASE_EXPIRED,
        Reason.WORKER_CRASHED,
        Reason.WORKER_GONE,
    ],
)
def test_every_kind_of_crash_by_the_operator(setup: ForbiddenSetup, reason: Reason) -> None:
    life = setup.life(Phase.RUNNING)
    status = by_operator(
        setup, life, lambda view: phase_change.crash(view, reason, "", now=at(), jitter_sample=0.1)
    )
    phase = "Retrying" if reason is Reason.WORKER_GONE else "Queued"
    assert (status["phase"], status.get("crashes", 0), status.get("retries", 0)) == (phase, 1, 0)


def test_a_crash_of_the_handlers_process_by_its_worker(setup: ForbiddenSetup) -> None:
    life, reason = setup.life(Phase.RUNNING), Reason.HANDLER_CRASHED
    status = by_worker(
        setup, life, lambda view: phase_change.crash(view, reason, "", now=at(), jitter_sample=0.1)
    )
    assert (status["phase"], status.get("crashes", 0), status.get("retries", 0)) == (
        "Retrying",
        1,
        0,
    )


@pytest.mark.parametrize("decide", [lives.evicted, lives.overran, lives.crashed])
@pytest.mark.parametrize("spent", [False, True])
def test_every_end_of_a_running_job_by_the_operator(
    setup: ForbiddenSetup, decide: Decide, *, spent: bool
) -> None:
    life = setup.life(
        Phase.RUNNING, retryPolicy={"maxRetries": 0, "maxCrashes": 0} if spent else {}
    )
    phase = by_operator(setup, life, decide)["phase"]
    assert phase == _where_it_ends(decide, spent=spent)


def _where_it_ends(decide: Decide, *, spent: bool) -> str:
    if decide is lives.evicted:
        return "Queued"
    if spent:
        return "DeadLetter"
    return "Queued" if decide is lives.crashed else "Retrying"


def test_the_operator_cancels_a_running_job_and_one_whose_attempt_ran_too_long_for_good(
    setup: ForbiddenSetup,
) -> None:
    life = setup.life(Phase.RUNNING)
    life.change_spec(cancel=True).object()
    assert by_operator(setup, life, lives.cancelled)["phase"] == "Cancelled"
    final = setup.life(Phase.RUNNING, retryPolicy={"noRetryOn": ["Timeout"]})
    assert by_operator(setup, final, lives.overran)["reason"] == "ExecutionTimeout"


def test_a_hundred_and_one_evictions(setup: ForbiddenSetup) -> None:
    life = setup.life()
    for number in range(1, 102):
        life.claim()
        status = by_operator(setup, life, lives.evicted)
        assert status["phase"] == ("Queued" if number <= 3 else "Retrying")
        if status["phase"] == "Retrying":
            by_operator(setup, life, lives.promoted)
    assert life.status().get("crashes", 0) == 1


def test_retries_up_to_the_last_and_then_the_dead_letter(setup: ForbiddenSetup) -> None:
    life = setup.life(retryPolicy={"maxRetries": 2})
    for expected in ("Retrying", "Retrying", "DeadLetter"):
        life.claim()
        assert by_worker(setup, life, lives.failed)["phase"] == expected
        if expected == "Retrying":
            by_operator(setup, life, lives.promoted)
    assert life.status()["reason"] == "RetriesExhausted"


def test_crashes_up_to_the_last_and_then_the_dead_letter(setup: ForbiddenSetup) -> None:
    life = setup.life(retryPolicy={"maxCrashes": 2})
    for expected in ("Queued", "Retrying", "DeadLetter"):
        life.claim()
        assert by_operator(setup, life, lives.crashed)["phase"] == expected
        if expected == "Retrying":
            by_operator(setup, life, lives.promoted)
    assert life.status()["crashes"] == 3


def test_a_hundred_and_one_releases(setup: ForbiddenSetup) -> None:
    life = setup.life()
    for number in range(1, 102):
        life.claim()
        status = by_worker(setup, life, lives.released)
        assert status["phase"] == ("Queued" if number <= 3 else "Retrying")
        if status["phase"] == "Retrying":
            by_operator(setup, life, lives.promoted)
    status = life.status()
    assert (status.get("releases", 0), status.get("crashes", 0), status["attempt"]) == (101, 1, 101)
    assert (len(status["history"]), status["historyOmitted"]) == (20, 101 + 98 - 20)


def test_a_redrive_gives_fresh_budgets_and_a_second_one_too(setup: ForbiddenSetup) -> None:
    life = setup.life(Phase.DEAD_LETTER)
    for control in (1, 5):
        life.change_spec(redrive=control).object()
        status = by_operator(setup, life, lives.redriven)
        assert (status["phase"], status.get("redrives", 0), status.get("retries", 0)) == (
            "Queued",
            control,
            0,
        )
        life.claim()
        by_worker(setup, life, lives.failed)
        by_operator(setup, life, lives.promoted)
        life.claim()
        by_worker(setup, life, lives.given_up)


def test_a_dead_letter_can_be_dismissed(setup: ForbiddenSetup) -> None:
    life = setup.life(Phase.DEAD_LETTER)
    life.change_spec(cancel=True).object()
    assert by_operator(setup, life, lives.dropped)["reason"] == "Dismissed"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"cancel": True}, Reason.CANCEL_REQUESTED),
        ({"notAfter": at()}, Reason.DEADLINE_EXCEEDED),
        ({"deadlineSeconds": 1}, Reason.DEADLINE_EXCEEDED),
        ({"deduplicationId": "a"}, Reason.DUPLICATE),
    ],
)
def test_every_ground_to_cancel_a_waiting_job(
    setup: ForbiddenSetup, spec: dict[str, Any], reason: Reason
) -> None:
    life = setup.life(**spec)
    by_operator(
        setup, life, lambda view: phase_change.cancel_waiting_job(view, reason, "", now=at())
    )


def test_a_running_job_is_ended_for_its_deadline_by_its_holder_and_by_the_operator(
    setup: ForbiddenSetup,
) -> None:
    for by in (by_worker, by_operator):
        life = setup.life(Phase.RUNNING, deadlineSeconds=1)
        assert by(setup, life, lives.expired)["reason"] == "DeadlineExceeded"


@pytest.mark.parametrize(
    "spec",
    [
        {"notBefore": at()},
        {"notAfter": at()},
        {"deduplicationId": "a"},
        {"dependsOn": [{"name": "a"}]},
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_a_gated_job_is_claimed_after_it_was_held_back_and_admitted(
    setup: ForbiddenSetup, spec: dict[str, Any]
) -> None:
    life = setup.life(Phase.PENDING, **spec)
    assert by_operator(setup, life, lives.promoted)["admitted"] is True
    assert life.claim()["status"]["admitted"] is True
    assert "admitted" not in by_worker(setup, life, lives.released)


def test_a_gated_job_is_claimed_after_it_was_admitted_where_it_stood(setup: ForbiddenSetup) -> None:
    life = setup.life(notBefore=at())
    setup.operator.merge(life.status_path, {"status": {"admitted": True}}).object()
    life.claim()


def test_a_pending_job_may_come_to_wait_for_something_else(setup: ForbiddenSetup) -> None:
    life = setup.life(Phase.PENDING)
    body = {"status": {"reason": "RateLimit", "message": "2 a second"}}
    setup.operator.merge(life.status_path, body).object()


def test_a_suspended_job_runs_once_it_is_resumed(setup: ForbiddenSetup) -> None:
    life = setup.life(suspend=True)
    life.change_spec(suspend=False).object()
    life.claim()
    life.change_spec(suspend=True).object()
    by_worker(setup, life, lives.succeeded)


def test_priority_changes_while_a_job_waits(setup: ForbiddenSetup) -> None:
    life = setup.life()
    life.change_spec(priority=9).object()


@pytest.mark.parametrize("phase", sorted(FINISHED_PHASES))
def test_a_rerun_of_a_finished_job_is_acknowledged(setup: ForbiddenSetup, phase: Phase) -> None:
    life = setup.life(phase)
    life.change_spec(rerun=3).object()
    setup.operator.merge(life.status_path, {"status": {"reruns": 3}}).object()


def test_a_heartbeat_with_progress_and_a_checkpoint(setup: ForbiddenSetup) -> None:
    life = setup.life(Phase.RUNNING)
    fields = renewal_fields(life.status()["lease"], 1, at(20))
    riding = {"progress": {"percent": 40, "message": "half"}, "checkpoint": [1, {"a": None}]}
    operations = [
        {"op": "add", "path": f"/status/{name}", "value": value}
        for name, value in {**fields, **riding}.items()
    ]
    status = setup.worker.client.patch(life.status_path, operations).object()["status"]
    assert status["checkpoint"] == [1, {"a": None}]


def test_a_user_who_labels_or_cancels_does_not_disturb_the_holder(setup: ForbiddenSetup) -> None:
    life = setup.life(Phase.RUNNING)
    operations = life.operations(lives.succeeded)
    setup.space.admin.merge(life.path, {"metadata": {"labels": {"a": "b"}}}).object()
    life.change_spec(cancel=True).object()
    setup.worker.client.patch(life.status_path, operations).object()


def test_large_json_stays_within_what_the_policies_may_cost(setup: ForbiddenSetup) -> None:
    life = setup.life(payload=LARGE)
    life.claim()
    checkpoint = [{"op": "add", "path": "/status/checkpoint", "value": LARGE}]
    setup.worker.client.patch(life.status_path, checkpoint).object()
    done: Decide = lambda view: phase_change.succeed(view, now=at(), result=LARGE)  # noqa: E731
    by_worker(setup, life, done)
    life.change_spec(rerun=1).object()
    setup.operator.merge(life.status_path, {"status": {"reruns": 1}}).object()


def test_applying_a_manifest_again_changes_nothing(setup: ForbiddenSetup) -> None:
    life = setup.life(Phase.SUCCEEDED, payload={"a": [1, None]}, retryPolicy={"jitter": 0})
    again = life.read()
    assert setup.space.admin.replace(life.path, again).accepted


def test_a_worker_announces_its_process_again_and_again(setup: ForbiddenSetup) -> None:
    path = setup.space.path("leases", LEASES)
    name = WORKER_LEASE_PREFIX + setup.worker.pod
    body = {
        "metadata": {"name": name, "annotations": {POD_UID_ANNOTATION: setup.worker.pod_uid}},
        "spec": {"holderIdentity": "worker-0/1"},
    }
    setup.worker.client.create(path, body).object()
    again = {"spec": {"holderIdentity": "worker-0/2"}}
    setup.worker.client.merge(f"{path}/{name}", again).object()
    setup.operator.delete(f"{path}/{name}").object()


def test_the_operator_stands_for_election(setup: ForbiddenSetup) -> None:
    path = setup.space.path("leases", LEASES)
    body = {"metadata": {"name": OPERATOR_LEASE}, "spec": {"holderIdentity": "operator-0"}}
    setup.operator.create(path, body).object()


def test_leases_of_others_are_none_of_our_business(setup: ForbiddenSetup) -> None:
    path = setup.space.path("leases", LEASES)
    body: dict[str, Any] = {"spec": {"holderIdentity": "a"}}
    may_elect = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]}
    for account in ("controller", "another-asyncjob-worker", "asyncjob-workers"):
        setup.space.grant(account, may_elect)
        body["metadata"] = {"name": f"{account}-lease"}
        setup.space.as_account(account).create(path, body).object()
    setup.operator.create(path, {**body, "metadata": {"name": "a-third"}}).object()


def test_a_job_is_created_with_the_control_fields_that_need_no_past(setup: ForbiddenSetup) -> None:
    path = collection_path(setup.space.name, JOBS)
    controls: dict[str, Any] = {
        "cancel": True,
        "suspend": True,
        "priority": 3,
        "redrive": 0,
        "rerun": 0,
    }
    setup.space.admin.create(path, job(**controls)).object()


def test_the_operator_acknowledges_a_rerun_of_a_running_job(setup: ForbiddenSetup) -> None:
    life = setup.life(Phase.RUNNING)
    life.change_spec(rerun=1).object()
    setup.operator.merge(life.status_path, {"status": {"reruns": 1}}).object()
    by_worker(setup, life, lives.succeeded)


def test_who_may_read_a_secret_may_have_a_job_read_it(setup: ForbiddenSetup) -> None:
    may_get = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    setup.space.grant("author", AUTHOR_RULE, may_get)
    author = setup.space.as_account("author")
    path = collection_path(setup.space.name, JOBS)
    author.create(path, job(payloadFrom=SECRET)).object()
    author.merge(f"{path}/job", {"spec": {"rerun": 1}}).object()


def test_the_operator_creates_children_of_jobs_that_read_secrets(setup: ForbiddenSetup) -> None:
    path = collection_path(setup.space.name, JOBS)
    setup.operator.create(path, job("nightly-1", payloadFrom=SECRET)).object()


def test_cancelling_and_suspending_takes_no_right_to_the_secret(setup: ForbiddenSetup) -> None:
    setup.space.grant("author", AUTHOR_RULE)
    author = setup.space.as_account("author")
    jobs = collection_path(setup.space.name, JOBS)
    setup.space.admin.create(jobs, job(payloadFrom=SECRET)).object()
    author.merge(f"{jobs}/job", {"spec": {"cancel": True}}).object()
    crons = collection_path(setup.space.name, CRON_JOBS)
    setup.space.admin.create(crons, cron_job(payloadFrom=SECRET)).object()
    author.merge(f"{crons}/nightly", {"spec": {"suspend": True}}).object()


def test_a_schedule_goes_forward(setup: ForbiddenSetup) -> None:
    path = collection_path(setup.space.name, CRON_JOBS)
    setup.space.admin.create(path, cron_job()).object()
    for time in (at(0), at(60), at(60)):
        body = {"status": {"lastScheduleTime": time}}
        setup.operator.merge(f"{path}/nightly/status", body).object()


def test_a_submitter_creates_a_child_and_owns_it_by_something_of_its_own(
    setup: ForbiddenSetup,
) -> None:
    submitter = member(setup.space, "asyncjob-job-submitter")
    body = job("child")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "uid": "some-uid"}
    body["metadata"] |= {"labels": {PARENT_LABEL: "a-uid"}, "ownerReferences": [owner]}
    submitter.create(collection_path(setup.space.name, JOBS), body).object()


def test_labels_and_annotations_of_no_meaning_to_us_stay_free(setup: ForbiddenSetup) -> None:
    life, who = setup.life(Phase.SUCCEEDED), member(setup.space, "asyncjob-gateway")
    for value in ("one", "two", None):
        metadata = {"labels": {"team": value}, "annotations": {"note": value}}
        who.merge(life.path, {"metadata": metadata}).object()


def test_who_may_delete_marks_and_unmarks_a_run(setup: ForbiddenSetup) -> None:
    life, who = setup.life(Phase.SUCCEEDED), member(setup.space, *ADMINISTRATOR_WHO_DELETES)
    for value in ("one", None):
        who.merge(life.path, {"metadata": {"labels": {CRON_JOB_UID_LABEL: value}}}).object()


def test_who_may_update_finalizers_sets_one_and_takes_it_away(setup: ForbiddenSetup) -> None:
    """As the garbage collector does, and an administrator of the cluster."""
    life = setup.life()
    setup.space.grant("finalizing", AUTHOR_RULE, FINALIZES)
    for finalizers in (["example.org/kept"], None):
        body = {"metadata": {"finalizers": finalizers}}
        setup.space.as_account("finalizing").merge(life.path, body).object()


def test_a_gateway_pauses_queues_and_triggers_suspends_and_backfills_schedules(
    setup: ForbiddenSetup,
) -> None:
    who, queues = member(setup.space, "asyncjob-gateway"), collection_path(setup.space.name, QUEUES)
    made = who.create(queues, queue("mail", paused=True)).object()
    who.merge(f"{queues}/mail", {"spec": {"paused": False}}).object()
    backfill = {"from": at(), "to": at(60)}
    controls = {"suspend": True, "trigger": 1, "backfill": backfill}
    who.merge(new_cron_job(setup), {"spec": controls}).object()
    assert made["spec"]["paused"] is True


def test_an_administrator_of_jobs_who_deletes_decides_what_is_kept_and_changes_a_schedule(
    setup: ForbiddenSetup,
) -> None:
    who = member(setup.space, *ADMINISTRATOR_WHO_DELETES)
    changes = {"retention": {"maxFinished": 5}, "maxConcurrency": 2}
    who.merge(new_queue(setup), {"spec": changes}).object()
    limits = {"successfulJobsHistoryLimit": 0, "schedule": "@daily"}
    who.merge(new_cron_job(setup), {"spec": limits}).object()
