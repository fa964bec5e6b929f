"""Each rule is broken by at least one change of a good history, and the checker names that rule."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from asyncjob.audit import catalog
from asyncjob.audit.catalog import AUDIT_RULES, AuditRule
from asyncjob.audit.checker import CheckOptions, HistoryChecker, HistoryReport
from asyncjob.audit.evidence import AuditLog, HandlerRecord
from asyncjob.audit.recorded_object import value_digest
from support.objects.histories import JOBS, NAMESPACE, START, HistoryBuilder, Line

KEY = {"annotations": {"asyncjob.dev/submitted-content": "c"}}
Story = Callable[[HistoryBuilder], None]


@dataclass(frozen=True)
class Case:
    """A history, whether it breaks a rule, and the evidence beside it."""

    rule: AuditRule
    story: Story
    evidence: Callable[[HistoryBuilder], tuple[AuditLog | None, HandlerRecord | None]] = lambda _: (
        None,
        None,
    )


CASES: list[Case] = []


def breaks(rule: AuditRule, **how: Any) -> Callable[[Story], Story]:
    def add(story: Story) -> Story:
        CASES.append(Case(rule, story, **how))
        return story

    return add


def job_after(history: HistoryBuilder, *writes: str) -> Line:
    """Write a job so often, and return the line of the last."""
    history.create("job")
    line: Line = history.lines[-1]
    for write in writes:
        line = getattr(history, write)("job")
    return line


def status_of(line: Line) -> Any:
    """Return the status of a line, to be changed in this line only."""
    line["object"] = copy.deepcopy(line["object"])
    return line["object"]["status"]


# ---- one job


@breaks(catalog.VERSION_ORDER)
def an_older_version_after_a_newer(history: HistoryBuilder) -> None:
    job_after(history, "claim", "renew")
    history.lines.append(history.lines[-2])


@breaks(catalog.VERSION_ORDER)
def a_name_given_away_without_a_deletion(history: HistoryBuilder) -> None:
    history.create("job")
    history.create("job")


@breaks(catalog.JOB_CREATED)
def a_job_born_with_an_attempt(history: HistoryBuilder) -> None:
    status_of(job_after(history))["attempt"] = 1


@breaks(catalog.JOB_TRANSITION)
def success_without_an_attempt(history: HistoryBuilder) -> None:
    job_after(history, "succeed")


@breaks(catalog.JOB_TRANSITION)
def a_succeeded_job_that_is_queued_again(history: HistoryBuilder) -> None:
    job_after(history, "claim", "succeed")
    history.move("job", "Queued", "Redriven", drop=("result",))


@breaks(catalog.JOB_REASON)
def a_retry_for_no_reason(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "fail")).pop("reason")


@breaks(catalog.JOB_REASON)
def a_dead_letter_whose_reason_changes_on_the_way(history: HistoryBuilder) -> None:
    job_after(history, "claim", "fail")
    history.write("job", reason="LeaseExpired")


@breaks(catalog.JOB_SPEC)
def another_payload(history: HistoryBuilder) -> None:
    job_after(history)
    history.change_spec("job", payload={"b": 2})


@breaks(catalog.JOB_SPEC)
def a_cancel_taken_back(history: HistoryBuilder) -> None:
    job_after(history)
    history.change_spec("job", cancel=True)
    history.change_spec("job", cancel=False)


@breaks(catalog.JOB_GATE)
def a_claim_of_a_suspended_job(history: HistoryBuilder) -> None:
    job_after(history)
    history.change_spec("job", suspend=True)
    history.claim("job")


@breaks(catalog.JOB_GATE)
def a_claim_of_a_gated_job_that_was_not_admitted(history: HistoryBuilder) -> None:
    history.create("job", notBefore=history.now())
    history.claim("job")


@breaks(catalog.JOB_POLICY)
def a_policy_that_is_not_the_specs(history: HistoryBuilder) -> None:
    history.create("job", retryPolicy={"maxRetries": 1})
    history.claim("job")


@breaks(catalog.JOB_POLICY)
def more_retries_than_allowed(history: HistoryBuilder) -> None:
    job_after(history, *["claim", "fail", "promote"] * 3, "claim", "fail")


@breaks(catalog.JOB_COUNTERS)
def a_retry_that_costs_nothing(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "fail"))["retries"] = 0


@breaks(catalog.JOB_COUNTERS)
def a_redrive_that_keeps_what_was_spent(history: HistoryBuilder) -> None:
    job_after(history, "claim", "fail", "promote", "claim")
    history.move("job", "DeadLetter", "NotRetryable", error={"type": "E"})
    status_of(history.redrive("job"))["retries"] = 1


@breaks(catalog.JOB_HISTORY)
def a_change_of_phase_that_is_not_in_the_history(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "fail")).pop("history")


@breaks(catalog.JOB_HISTORY)
def an_entry_rewritten(history: HistoryBuilder) -> None:
    line = job_after(history, "claim", "fail", "promote")
    status_of(line)["history"][0]["attempt"] = 7


@breaks(catalog.JOB_FINISHED)
def a_result_that_changes_afterwards(history: HistoryBuilder) -> None:
    job_after(history, "claim", "succeed")
    history.write("job", result={"digest": "other"})


@breaks(catalog.JOB_FINISHED)
def an_end_without_a_time(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "succeed")).pop("completionTime")


@breaks(catalog.LEASE_HOLDER)
def a_lease_that_changes_hands(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "renew"))["lease"]["worker"] = "worker-9/1"


@breaks(catalog.LEASE_HOLDER)
def a_lease_kept_after_the_end(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    lease = history.objects["job"]["status"]["lease"]
    status_of(history.succeed("job"))["lease"] = lease


@breaks(catalog.LEASE_HOLDER)
def a_renewal_undone(history: HistoryBuilder) -> None:
    line = job_after(history, "claim", "renew", "renew")
    status_of(line)["lease"]["renewals"] = 0


@breaks(catalog.LEASE_TAKEOVER)
def a_lease_found_expired_while_it_lives(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    history.clock += 57
    history.expire("job")


@breaks(catalog.LEASE_TAKEOVER)
def a_lease_found_expired_just_after_its_renewal(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    history.clock += 20
    history.renew("job")
    history.clock += 50
    history.expire("job")


@breaks(catalog.CLAIM_ATTEMPT_NUMBER)
def a_claim_that_counts_for_nothing(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim"))["attempt"] = 0


@breaks(catalog.CLAIM_ATTEMPT_NUMBER)
def an_attempt_that_shrank_in_a_gap(history: HistoryBuilder) -> None:
    job_after(history, "claim", "fail")
    history.objects["job"]["status"]["attempt"] = 0
    history.objects["job"]["metadata"]["resourceVersion"] = history.next_version()
    history.relist()


@breaks(catalog.CLAIM_UNIQUE)
def a_claim_with_the_id_of_the_last_but_one(history: HistoryBuilder) -> None:
    line = job_after(history, *["claim", "release"] * 2, "claim")
    status_of(line)["claim"] = "claim-job-1"


@breaks(catalog.CLAIM_UNIQUE)
def another_claim_id_in_the_midst_of_an_attempt(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "renew"))["claim"] = "forged"


@breaks(catalog.FENCING_EFFECT)
def a_checkpoint_of_an_attempt_that_is_over(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    history.clock += 70
    history.expire("job")
    history.write("job", checkpoint={"row": 9})


@breaks(catalog.FENCING_EFFECT)
def progress_made_up_as_the_job_is_taken_away(history: HistoryBuilder) -> None:
    job_after(history, "claim")
    history.clock += 70
    status_of(history.expire("job"))["progress"] = {"percent": 99}


@breaks(catalog.FENCING_EFFECT)
def a_result_without_success(history: HistoryBuilder) -> None:
    status_of(job_after(history, "claim", "fail"))["result"] = 1


@breaks(catalog.JOB_KEPT)
def an_unfinished_job_that_is_gone(history: HistoryBuilder) -> None:
    job_after(history, "claim", "delete")


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
        history.promote("job")
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
    assert {case.rule for case in CASES} == set(AUDIT_RULES)


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
