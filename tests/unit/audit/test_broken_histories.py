"""Each rule is broken by at least one change of a good history, and the checker names that rule."""

from collections.abc import Iterator
from typing import Any

import pytest

from asyncjob.audit import catalog
from asyncjob.audit.catalog import AUDIT_RULES
from asyncjob.audit.checker import CheckOptions, HistoryChecker, HistoryReport
from asyncjob.audit.evidence import AuditLog, HandlerRecord
from asyncjob.audit.recorded_object import value_digest
from support.objects.array_histories import broken as array_broken_histories
from support.objects.broken_histories import CASES, Case, breaks, job_after
from support.objects.histories import JOBS, NAMESPACE, START, HistoryBuilder, Line

KEY = {"annotations": {"asyncjob.dev/submitted-content": "c"}}


# ---- keys, queues, cron jobs, retention


@breaks(catalog.KEY_IDEMPOTENCY)
def two_jobs_of_one_key(history: HistoryBuilder) -> None:
    for name in ("first", "second"):
        history.create(name, idempotencyKey="k", **KEY)


@breaks(catalog.KEY_DEDUPLICATION)
def two_duplicates_that_run(history: HistoryBuilder) -> None:
    for name in ("first", "second"):
        history.create(name, deduplicationId="d")
        history.write(name, admitted=True)


@breaks(catalog.KEY_DEDUPLICATION)
def a_duplicate_admitted_beside_one_that_retries(history: HistoryBuilder) -> None:
    for name in ("first", "second"):
        history.create(name, deduplicationId="d")
    history.write("first", admitted=True)
    history.claim("first")
    history.fail("first")
    history.write("second", admitted=True)


def limited(history: HistoryBuilder, *names: str, **limits: Any) -> None:
    history.queue(**limits)
    history.clock += 60
    for name in names:
        history.create(name, concurrencyKey="key")


@breaks(catalog.QUEUE_RESERVATIONS)
def one_reservation_too_many(history: HistoryBuilder) -> None:
    limited(history, "first", "second", maxConcurrency=1)
    history.reserve("first", "second", maxConcurrency=1)


@breaks(catalog.QUEUE_RESERVATIONS)
def one_reservation_too_many_for_a_key(history: HistoryBuilder) -> None:
    limited(history, "first", "second", maxConcurrencyPerKey=1)
    history.reserve("first", "second", key="key", maxConcurrencyPerKey=1)


@breaks(catalog.QUEUE_ADMISSION)
def an_admission_without_a_reservation(history: HistoryBuilder) -> None:
    limited(history, "first", maxConcurrency=1)
    history.write("first", admitted=True)


@breaks(catalog.QUEUE_ADMISSION)
def a_claim_without_admission(history: HistoryBuilder) -> None:
    limited(history, "first", rateLimit={"count": 1})
    history.claim("first")


@breaks(catalog.QUEUE_ADMISSION)
def a_claim_after_the_place_was_given_away(history: HistoryBuilder) -> None:
    limited(history, "first", maxConcurrency=1)
    history.reserve("first", maxConcurrency=1)
    history.write("first", admitted=True)
    history.reserve(maxConcurrency=1)
    history.claim("first")


@breaks(catalog.QUEUE_CONCURRENCY)
def one_more_that_runs(history: HistoryBuilder) -> None:
    limited(history, "first", "second", maxConcurrency=1)
    for name in ("first", "second"):
        history.reserve(name, maxConcurrency=1)
        history.write(name, admitted=True)
        history.claim(name)


@breaks(catalog.QUEUE_CONCURRENCY)
def one_more_of_a_key_that_runs(history: HistoryBuilder) -> None:
    limited(history, "first", "second", maxConcurrencyPerKey=1)
    for name in ("first", "second"):
        history.reserve(name, maxConcurrencyPerKey=1)
        history.write(name, admitted=True)
        history.claim(name)


@breaks(catalog.QUEUE_RATE)
def one_start_too_many_in_a_period(history: HistoryBuilder) -> None:
    rate = {"count": 2, "periodSeconds": 10}
    names = ("first", "second", "third")
    limited(history, *names, rateLimit=rate)
    for name in names:
        history.reserve(name, rateLimit=rate)
        history.clock += 3


@breaks(catalog.SCHEDULE_ONCE)
def a_time_that_ran_twice(history: HistoryBuilder) -> None:
    history.schedule("nightly")
    name = history.run_of("nightly", 1)
    history.claim(name)
    history.succeed(name)
    history.clock += 90_000
    history.delete(name)
    history.run_of("nightly", 1)


@breaks(catalog.SCHEDULE_OVERLAP)
def a_run_beside_another_under_forbid(history: HistoryBuilder) -> None:
    history.schedule("nightly", concurrencyPolicy="Forbid")
    history.clock += 60
    history.run_of("nightly", 1)
    history.run_of("nightly", 2)


@breaks(catalog.SCHEDULE_SETTLED)
def a_schedule_that_went_back(history: HistoryBuilder) -> None:
    history.schedule("nightly", settled="2026-11-23T12:00:00Z")
    history.schedule("nightly", settled="2026-11-23T11:59:00Z")


@breaks(catalog.RETENTION_FLOOR)
def a_job_deleted_too_young(history: HistoryBuilder) -> None:
    job_after(history, "claim", "succeed")
    history.clock += 590
    history.delete("job")


@breaks(catalog.RETENTION_FLOOR)
def a_key_forgotten_within_its_window(history: HistoryBuilder) -> None:
    history.create("job", idempotencyKey="k", **KEY)
    history.claim("job")
    history.succeed("job")
    history.clock += 86_000
    history.delete("job")


# ---- with the API server's audit log


def audit_event(name: str, version: str = "", *, verb: str = "patch", pod: str = "") -> Line:
    extra = {"authentication.kubernetes.io/pod-uid": [pod]} if pod else {}
    ref = {"apiGroup": "asyncjob.dev", "resource": JOBS, "namespace": NAMESPACE, "name": name}
    return {
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": "someone", "extra": extra},
        "objectRef": {**ref, **({"subresource": "status"} if verb == "patch" else {})},
        "responseStatus": {"code": 200},
        "responseObject": {"metadata": {"resourceVersion": version}},
        "stageTimestamp": START.isoformat().replace("12:00:00", "12:00:30"),
        "requestURI": "/apis",
    }


def last_write_by(pod: str) -> Any:
    """Return evidence: the newest version of the job was written in this pod."""

    def evidence(history: HistoryBuilder) -> tuple[AuditLog, None]:
        log = AuditLog()
        version = history.objects["job"]["metadata"]["resourceVersion"]
        log.add(audit_event("job", version, pod=pod))
        return log, None

    return evidence


@breaks(catalog.FENCING_WRITER, evidence=last_write_by("pod-worker-9"))
def a_success_reported_by_another(history: HistoryBuilder) -> None:
    job_after(history, "claim", "succeed")


@breaks(catalog.FENCING_WRITER, evidence=last_write_by("pod-worker-9"))
def a_claim_in_the_name_of_another(history: HistoryBuilder) -> None:
    job_after(history, "claim")


@breaks(catalog.FENCING_WRITER, evidence=last_write_by("pod-worker-0"))
def a_worker_that_finds_its_own_lease_expired(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    history.clock += 70
    history.expire("job")


@breaks(catalog.FENCING_WRITER, evidence=last_write_by("pod-worker-0"))
def a_write_by_who_held_the_job_once(history: HistoryBuilder) -> None:
    job_after(history, "claim", "fail", "promote")


@breaks(catalog.FENCING_WRITER, evidence=last_write_by(""))
def a_heartbeat_by_somebody_else(history: HistoryBuilder) -> None:
    job_after(history, "claim", "renew")


def accepted(_: HistoryBuilder) -> tuple[AuditLog, None]:
    log = AuditLog()
    log.add(audit_event("lost", verb="create"))
    return log, None


@breaks(catalog.JOB_ACCEPTED, evidence=accepted)
def an_accepted_job_that_nobody_ever_saw(history: HistoryBuilder) -> None:
    job_after(history)


# ---- with the workers' record


def record_line(history: HistoryBuilder, event: str, attempt: int = 1, **more: Any) -> Line:
    uid = history.objects["job"]["metadata"]["uid"]
    line: Line = {"event": event, "time": history.now(), "namespace": NAMESPACE, "name": "job"}
    line |= {"uid": uid, "attempt": attempt, "claim": f"claim-job-{attempt}"}
    return {**line, "worker": "worker-0/1", **more}


def recorded(*events: tuple[str, int, float]) -> Any:
    """Return evidence: handlers as a worker recorded them, with the seconds since the start."""

    def evidence(history: HistoryBuilder) -> tuple[None, HandlerRecord]:
        record = HandlerRecord()
        for event, attempt, clock in events:
            history.clock = clock
            record.add(record_line(history, event, attempt))
        return None, record

    return evidence


@breaks(catalog.HANDLER_CLAIMED, evidence=recorded(("started", 2, 30.0)))
def a_handler_for_a_claim_that_was_never_made(history: HistoryBuilder) -> None:
    job_after(history, "claim")


@breaks(
    catalog.HANDLER_ALONE,
    evidence=recorded(("started", 1, 1.0), ("started", 2, 71.0), ("ended", 1, 80.0)),
)
def a_handler_that_went_on_beside_the_next(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    history.clock = 70
    history.release("job")
    history.claim("job")


def test_a_handler_that_may_have_been_frozen_is_counted_and_not_judged() -> None:
    went_on = recorded(("started", 1, 1.0), ("started", 2, 71.0), ("ended", 1, 80.0))

    def expired(history: HistoryBuilder) -> None:
        job_after(history, "claim")
        history.clock = 70
        history.expire("job")
        history.claim("job")

    def in_a_gap(history: HistoryBuilder) -> None:
        job_after(history, "claim")
        kept = len(history.lines)
        history.clock = 70
        history.release("job")
        history.claim("job")
        del history.lines[kept:]
        history.relist()

    for story in (expired, in_a_gap):
        report = judged(Case(catalog.HANDLER_ALONE, story, went_on))
        assert (report.violations, dict(report.unjudged)) == ([], {"handler.alone": 1})


def checkpoints(*values: Any) -> Any:
    def evidence(history: HistoryBuilder) -> tuple[None, HandlerRecord]:
        record = HandlerRecord()
        record.add(record_line(history, "started"))
        for value in values:
            record.add(record_line(history, "checkpoint", digest=value_digest(value)))
        return None, record

    return evidence


@breaks(catalog.CHECKPOINT_ORDER, evidence=checkpoints({"row": 1}, {"row": 2}))
def an_older_checkpoint_stored_last(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    for row in (2, 1):
        history.renew("job", checkpoint={"row": row})


@breaks(catalog.CHECKPOINT_ORDER, evidence=checkpoints({"row": 1}))
def a_checkpoint_that_the_handler_never_gave(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    history.renew("job", checkpoint={"row": 3})


def judged(case: Case) -> HistoryReport:
    history = HistoryBuilder()
    case.story(history)
    end = history.clock
    log, handlers = case.evidence(history)
    history.clock = end
    options = CheckOptions(manual_deletions=False)
    return HistoryChecker(options, log, handlers).check(history.end())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.story.__name__)
def test_a_broken_history_is_found_and_its_rule_named(case: Case) -> None:
    found = [violation for violation in judged(case).violations if violation.rule is case.rule]
    assert found
    assert all(violation.message and violation.subject.name for violation in found)
    assert all(violation.times for violation in found)


def test_every_rule_is_broken_by_some_history() -> None:
    of_arrays = {rule for rule, _ in array_broken_histories.CASES}
    assert {case.rule for case in CASES} | of_arrays == set(AUDIT_RULES)


def good_evidence() -> Iterator[Case]:
    """Yield the same evidence for histories in which it is as it should be."""

    def two_attempts(history: HistoryBuilder) -> None:
        a_handler_that_went_on_beside_the_next(history)

    def both_checkpoints(history: HistoryBuilder) -> None:
        job_after(history, "claim")
        history.renew("job", checkpoint={"row": 2})
        history.succeed("job")

    def claim(history: HistoryBuilder) -> None:
        job_after(history, "claim")

    def outcome(history: HistoryBuilder) -> None:
        job_after(history, "claim", "succeed")

    in_order = recorded(("started", 1, 1.0), ("ended", 1, 69.0), ("started", 2, 71.0))
    yield Case(catalog.HANDLER_ALONE, two_attempts, in_order)
    abandoned = (("started", 1, 1.0), ("abandoned", 1, 69.0), ("started", 2, 71.0))
    yield Case(catalog.HANDLER_ALONE, two_attempts, recorded(*abandoned, ("ended", 1, 90.0)))
    yield Case(catalog.CHECKPOINT_ORDER, both_checkpoints, checkpoints({"row": 1}, {"row": 2.0}))
    yield Case(catalog.FENCING_WRITER, claim, last_write_by("pod-worker-0"))
    yield Case(catalog.FENCING_WRITER, outcome, last_write_by("pod-worker-0"))


@pytest.mark.parametrize("case", [*good_evidence()], ids=lambda case: case.story.__name__)
def test_evidence_that_agrees_with_the_history_breaks_nothing(case: Case) -> None:
    assert judged(case).violations == []


def test_of_each_rule_the_first_hundred_are_kept_and_all_are_counted() -> None:
    history = HistoryBuilder()
    for number in range(150):
        status_of_new = history.create(f"job-{number}")
        history.claim(status_of_new)
        history.objects[status_of_new]["status"].pop("lease")
        history.write(status_of_new)
    report = HistoryChecker(CheckOptions()).check(history.end())
    assert report.counts["lease.holder"] >= 150
    assert sum(one.rule is catalog.LEASE_HOLDER for one in report.violations) == 100
