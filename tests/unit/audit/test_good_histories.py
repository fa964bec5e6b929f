"""Histories in which much goes wrong and nothing is wrong: no false alarm."""

from collections.abc import Callable

import pytest

from asyncjob.audit.checker import CheckOptions, HistoryChecker, HistoryReport
from asyncjob.audit.evidence import AuditLog
from asyncjob.audit.history_file import NotAHistoryError
from support.objects.histories import ARRAYS, CRON_JOBS, JOBS, QUEUES, START, HistoryBuilder, Line

KEY = {"annotations": {"asyncjob.dev/submitted-content": "c"}}
BOTH = {"asyncjob.dev/deduplication-id": "d", "asyncjob.dev/idempotency-key": "k"}
Story = Callable[[HistoryBuilder], None]


def verdict(lines: list[Line], options: CheckOptions | None = None) -> HistoryReport:
    return HistoryChecker(options or CheckOptions()).check(lines)


def a_plain_life(history: HistoryBuilder) -> None:
    history.create("job")
    history.claim("job")
    history.succeed("job")


def failures_and_a_redrive(history: HistoryBuilder) -> None:
    history.create("job", retryPolicy={"maxRetries": 3})
    for _ in range(3):
        history.claim("job")
        history.fail("job")
        history.promote("job")
    history.claim("job")
    history.move("job", "DeadLetter", "RetriesExhausted", error={"type": "E"})
    history.redrive("job")
    history.claim("job")
    history.succeed("job")


def a_payload_too_deep_to_be_written(history: HistoryBuilder) -> None:
    payload: object = []
    for _ in range(300):
        payload = [payload]
    history.create("job", payload=payload)
    history.claim("job")
    history.succeed("job")


def a_takeover_after_the_lease_has_run_out(history: HistoryBuilder) -> None:
    history.create("job")
    history.claim("job", "worker-0")
    history.clock += 20
    history.renew("job", checkpoint={"row": 1}, progress={"percent": 5})
    history.clock += 62
    history.expire("job")
    history.claim("job", "worker-1")
    history.succeed("job")


def a_user_who_writes_while_the_job_runs(history: HistoryBuilder) -> None:
    history.create("job")
    history.claim("job")
    history.change_spec("job", suspend=True)
    history.change_spec("job", cancel=True, rerun=1)
    history.write("job", reruns=1)
    history.move("job", "Cancelled", "CancelRequested")


def deadlines_that_have_passed(history: HistoryBuilder) -> None:
    history.create("waits", deadlineSeconds=60)
    history.create("runs", deadlineSeconds=60)
    history.create("late", deadlineSeconds=60, notAfter=history.now())
    history.claim("runs")
    history.move("late", "Cancelled", "DeadlineExceeded")
    history.clock += 58
    history.move("waits", "Cancelled", "DeadlineExceeded")
    history.clock += 2
    history.move("runs", "Cancelled", "DeadlineExceeded")


def releases_that_outnumber_the_history(history: HistoryBuilder) -> None:
    history.create("job")
    for _ in range(25):
        history.claim("job")
        history.release("job")
    history.claim("job")
    history.succeed("job")


def a_gap_in_which_much_happened(history: HistoryBuilder) -> None:
    history.create("same")
    history.create("job")
    history.create("gone")
    written = len(history.lines)
    history.claim("job")
    history.fail("job")
    history.promote("job")
    history.claim("job")
    del history.objects["gone"]
    history.create("new")
    history.claim("new")
    del history.lines[written:]
    history.relist()
    history.succeed("job")
    history.succeed("new")
    history.claim("same")
    history.succeed("same")


def a_list_that_broke_off(history: HistoryBuilder) -> None:
    history.create("job")
    history.add("list", resource=JOBS, gap=True)
    history.relist()
    history.claim("job")


def a_key_used_again_once_its_job_is_gone(history: HistoryBuilder) -> None:
    for _ in range(2):
        history.create("job", idempotencyKey="k", **KEY)
        history.claim("job")
        history.succeed("job")
        history.clock += 90_000
        history.delete("job")


def a_second_job_of_a_key_that_is_taken_back(history: HistoryBuilder) -> None:
    history.create("first", labels=BOTH, idempotencyKey="k", deduplicationId="d", **KEY)
    history.create("second", labels=BOTH, idempotencyKey="k", deduplicationId="e", **KEY)
    history.mark("second", labels={"asyncjob.dev/deduplication-id": "d"})
    history.change_spec("second", cancel=True)
    history.clock += 100
    history.create("third", idempotencyKey="other", **KEY)


def duplicates_of_which_one_is_cancelled(history: HistoryBuilder) -> None:
    for name in ("first", "second"):
        history.create(name, deduplicationId="d")
    history.move("second", "Cancelled", "Duplicate")
    history.write("first", admitted=True)
    history.claim("first")
    history.succeed("first")
    history.create("third", deduplicationId="d")
    history.write("third", admitted=True)


def a_limited_queue_whose_watch_is_behind(history: HistoryBuilder) -> None:
    history.queue(maxConcurrency=1)
    history.clock += 60
    for name in ("first", "second"):
        history.create(name)
    history.reserve("first", maxConcurrency=1)
    late = history.lines.pop()
    history.write("first", admitted=True)
    history.claim("first")
    history.lines.append(late)
    history.succeed("first")
    history.reserve("second", maxConcurrency=1)
    history.write("second", admitted=True)
    history.claim("second")
    history.succeed("second")
    history.reserve(maxConcurrency=1)


def a_limit_that_workers_do_not_know_yet(history: HistoryBuilder) -> None:
    history.create("job")
    history.queue(maxConcurrency=1)
    history.clock += 2
    history.claim("job")
    history.queue(maxConcurrency=1)


def a_limit_lowered_below_what_runs(history: HistoryBuilder) -> None:
    history.queue(maxConcurrency=2)
    history.clock += 60
    names = ("first", "second")
    for name in names:
        history.create(name)
    history.reserve(*names, maxConcurrency=2)
    for name in names:
        history.write(name, admitted=True)
    history.reserve(*names, maxConcurrency=1)
    history.clock += 60
    for name in names:
        history.claim(name)
    history.reserve(*names, maxConcurrency=1)


def a_rate_just_kept(history: HistoryBuilder) -> None:
    history.queue(rateLimit={"count": 2, "periodSeconds": 10})
    history.clock += 60
    for number in range(6):
        history.create(f"job-{number}")
    for number in range(0, 6, 2):
        pair = (f"job-{number}", f"job-{number + 1}")
        history.reserve(*pair, rateLimit={"count": 2, "periodSeconds": 10})
        for name in pair:
            history.write(name, admitted=True)
            history.claim(name)
            history.succeed(name)
        history.clock += 10


def a_job_that_goes_on_after_a_wait_beside_the_only_start_of_a_period(
    history: HistoryBuilder,
) -> None:
    rate = {"count": 1, "periodSeconds": 600}
    history.queue(rateLimit=rate)
    history.clock += 60
    for name in ("first", "second"):
        history.create(name)
        history.reserve(name, rateLimit=rate, resumes=name == "second")
        history.write(name, admitted=True)
        history.claim(name)
        history.succeed(name)


def a_schedule_with_runs_one_after_the_other(history: HistoryBuilder) -> None:
    history.schedule("nightly", concurrencyPolicy="Forbid", settled="2026-11-23T12:00:00Z")
    history.clock += 60
    for minute in (1, 2):
        name = history.run_of("nightly", minute)
        history.schedule("nightly", concurrencyPolicy="Forbid", settled="2026-11-23T12:02:00Z")
        history.claim(name)
        history.succeed(name)


def old_jobs_that_are_deleted(history: HistoryBuilder) -> None:
    history.queue(retention={"minAgeSeconds": 5})
    history.create("job")
    history.claim("job")
    history.succeed("job")
    history.clock += 6
    history.delete("job")


STORIES: tuple[Story, ...] = (
    a_plain_life,
    failures_and_a_redrive,
    a_payload_too_deep_to_be_written,
    a_takeover_after_the_lease_has_run_out,
    a_user_who_writes_while_the_job_runs,
    deadlines_that_have_passed,
    releases_that_outnumber_the_history,
    a_gap_in_which_much_happened,
    a_list_that_broke_off,
    a_key_used_again_once_its_job_is_gone,
    a_second_job_of_a_key_that_is_taken_back,
    duplicates_of_which_one_is_cancelled,
    a_limited_queue_whose_watch_is_behind,
    a_limit_that_workers_do_not_know_yet,
    a_limit_lowered_below_what_runs,
    a_rate_just_kept,
    a_job_that_goes_on_after_a_wait_beside_the_only_start_of_a_period,
    a_schedule_with_runs_one_after_the_other,
    old_jobs_that_are_deleted,
)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_no_rule_is_broken_by(story: Story) -> None:
    history = HistoryBuilder()
    story(history)
    report = verdict(history.end(), CheckOptions(manual_deletions=False))
    assert report.violations == []


def test_what_lay_in_a_gap_is_counted_and_judged_by_less() -> None:
    history = HistoryBuilder()
    began = START.timestamp()
    history.clock = 10
    a_gap_in_which_much_happened(history)
    report = verdict(history.end())
    (gap,) = report.gaps
    assert (gap.resource, gap.since - began, gap.until - began) == (JOBS, 10, 10)
    assert (gap.changed, gap.created, gap.gone) == (1, 1, 1)
    assert report.jobs == 4


def test_a_list_that_broke_off_and_its_repetition_are_one_gap() -> None:
    history = HistoryBuilder()
    a_list_that_broke_off(history)
    assert len(verdict(history.end()).gaps) == 1


def test_a_recording_that_is_gone_on_with_has_a_gap_for_each_resource() -> None:
    history = HistoryBuilder()
    a_plain_life(history)
    again = HistoryBuilder()
    again.clock = 60
    report = verdict([*history.end(), *again.end()])
    assert sorted(gap.resource for gap in report.gaps) == sorted([CRON_JOBS, QUEUES, ARRAYS, JOBS])
    (of_jobs,) = [gap for gap in report.gaps if gap.resource == JOBS]
    assert of_jobs.gone == 1


def test_recordings_of_different_scope_are_not_taken_for_one() -> None:
    one, other = HistoryBuilder(), HistoryBuilder()
    other.lines[0]["contents"] = "whole"
    with pytest.raises(NotAHistoryError, match="check each alone"):
        verdict([*one.end(), *other.end()])


def test_a_recording_without_its_end_says_so() -> None:
    history = HistoryBuilder()
    a_plain_life(history)
    assert not verdict(history.lines).complete
    assert verdict(history.end()).complete


def test_who_deleted_a_job_is_not_guessed() -> None:
    history = HistoryBuilder()
    history.create("job")
    history.delete("job")
    lines = history.end()
    assert dict(verdict(lines).unjudged) == {"job.kept": 1}
    for user, broken in (
        ("ada", []),
        ("system:serviceaccount:ops:asyncjob-operator", ["job.kept"]),
    ):
        log = AuditLog()
        log.add(deletion("job", user))
        report = HistoryChecker(CheckOptions(), log).check(lines)
        assert [violation.rule.id for violation in report.violations] == broken
        assert not report.unjudged


def deletion(name: str, user: str) -> Line:
    return {
        "stage": "ResponseComplete",
        "verb": "delete",
        "user": {"username": user},
        "objectRef": {
            "apiGroup": "asyncjob.dev",
            "resource": JOBS,
            "namespace": "tests",
            "name": name,
        },
        "responseStatus": {"code": 200},
        "stageTimestamp": "2026-11-23T12:00:00.5Z",
        "requestURI": "/apis",
    }


def test_schedules_that_are_gone_are_forgotten() -> None:
    history = HistoryBuilder()
    history.schedule("nightly", settled="2026-11-23T12:30:00Z")
    line = history.schedule("nightly")
    line["event"] = "DELETED"
    again = history.schedule("nightly", settled="2026-11-23T12:00:00Z")
    assert again["resource"] == CRON_JOBS
    assert verdict(history.end()).violations == []


def test_a_chunk_of_an_array_may_go_at_once_and_unfinished() -> None:
    history = HistoryBuilder()
    history.create("chunk", labels={"asyncjob.dev/array-uid": "uid-a"})
    history.delete("chunk")
    log = AuditLog()
    log.add(deletion("chunk", "system:serviceaccount:ops:asyncjob-operator"))
    report = HistoryChecker(CheckOptions(), log).check(history.end())
    assert not report.violations
