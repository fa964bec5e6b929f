"""What a cron job decides besides: suspension, changes, triggers, history, names."""

from typing import Any

import pytest

from asyncjob.lifecycle.derived_jobs import cron_label_value, run_name, trigger_name
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.schedules.decide import decide_cron_job
from asyncjob_operator.core.schedules.snapshot import (
    CancelJobs,
    CreateRuns,
    DeleteJobs,
    DropRuns,
    VerifyUnfinished,
    WriteStatus,
    recheck_at,
)
from asyncjob_operator.core.schedules.view import read_cron_job
from support.objects.schedules import (
    ME,
    child,
    decided,
    moment,
    name_at,
    raw_cron,
    reservation,
    reserved_names,
    seconds,
    settled,
    shown,
    snapshot,
    written,
)

HOURLY = "2026-11-20T03:00"


def test_times_that_pass_while_suspended_are_not_missed() -> None:
    status = settled("2026-11-20T02:00")
    cron = raw_cron(status=status, suspend=True)
    now = "2026-11-20T05:30:00"
    fields = written(cron, now)
    assert fields["observed"]["suspend"] is True
    assert fields["nextScheduleTime"] is None
    assert fields["reason"] == "Suspended"
    cron["status"] = {
        key: value for key, value in {**status, **fields}.items() if value is not None
    }
    assert decided(cron, now).effect is None
    cron["spec"]["suspend"] = False
    fields = written(cron, now)
    assert fields["settledTime"] == "2026-11-20T05:30:00.000Z"
    assert fields["nextScheduleTime"] == "2026-11-20T06:00:00.000Z"
    assert "missed" not in fields
    assert "reserved" not in fields


@pytest.mark.parametrize(
    "change", [{"schedule": "30 * * * *"}, {"timeZone": "Asia/Kolkata"}, {"schedule": "nonsense"}]
)
def test_a_change_runs_nothing_that_lies_in_the_past(change: dict[str, Any]) -> None:
    cron = raw_cron(status=settled("2026-11-20T02:00"))
    cron["spec"] |= change
    fields = written(cron, "2026-11-20T02:45:00")
    assert fields["settledTime"] == "2026-11-20T02:45:00.000Z"
    assert "reserved" not in fields


def test_a_change_never_takes_the_settled_time_back() -> None:
    cron = raw_cron(status=settled("2026-11-20T09:00"))
    cron["spec"]["schedule"] = "30 * * * *"
    assert written(cron, "2026-11-20T02:45:00")["settledTime"] == "2026-11-20T09:00:00.000Z"


@pytest.mark.parametrize(
    ("spec", "reason", "word"),
    [
        ({"schedule": "5-1 * * * *"}, "BadSchedule", "minute"),
        ({"timeZone": "Mars/Olympus"}, "BadTimeZone", "spec.timeZone"),
        ({"schedule": "0 0 30 2 *"}, "NeverFires", "spec.schedule"),
    ],
)
def test_a_schedule_that_cannot_fire_says_so_and_triggers_work_all_the_same(
    spec: dict[str, Any], reason: str, word: str
) -> None:
    cron = raw_cron(status={}, **spec)
    effect = decided(cron, HOURLY).effect
    assert effect
    assert effect.event.reason == reason  # type: ignore[union-attr]  # a write
    fields = written(cron, HOURLY)
    assert fields["reason"] == reason
    assert word in fields["message"]
    assert fields["nextScheduleTime"] is None
    cron["status"] = {key: value for key, value in fields.items() if value is not None}
    assert decided(cron, HOURLY).effect is None
    cron["spec"]["trigger"] = 1
    assert reserved_names(written(cron, HOURLY)) == ["nightly-t1"]


def test_a_trigger_reserves_one_run_however_far_it_was_raised() -> None:
    status = settled("2026-11-20T03:00", triggers=2)
    fields = written(raw_cron(status=status, trigger=9), "2026-11-20T03:10:00")
    assert reserved_names(fields) == ["nightly-t9"]
    assert fields["triggers"] == 9
    assert fields["reserved"]["runs"][0]["trigger"] == 9
    assert not {"lastScheduleTime", "settledTime"} & fields.keys()


def test_a_trigger_under_forbid_is_refused_while_a_run_is_unfinished_and_says_so() -> None:
    cron = raw_cron(
        status=settled("2026-11-20T03:00"), trigger=1, concurrencyPolicy="Forbid", suspend=False
    )
    fields = written(cron, "2026-11-20T03:10:00", child("nightly-busy"))
    assert (fields["triggers"], fields["reason"]) == (1, "TriggerRefused")
    assert "nightly-busy" in fields["message"]
    assert "reserved" not in fields


def test_a_trigger_is_refused_only_by_runs_that_a_live_list_shows() -> None:
    cron = raw_cron(status=settled("2026-11-20T03:00"), trigger=1, concurrencyPolicy="Forbid")
    refusal = decided(cron, "2026-11-20T03:10:00", child("nightly-busy")).effect
    assert isinstance(refusal, WriteStatus)
    assert (refusal.needs_fresh_list, refusal.reserves) == (True, False)


def test_who_writes_the_reservation_of_a_trigger_holds_it() -> None:
    cron = raw_cron(status=settled("2026-11-20T03:00"), trigger=1)
    reserving = decided(cron, "2026-11-20T03:10:00").effect
    assert isinstance(reserving, WriteStatus)
    assert (reserving.needs_fresh_list, reserving.reserves) == (False, True)


def test_a_problem_is_told_once_whatever_else_changes_in_the_status() -> None:
    cron = raw_cron(status={}, schedule="5-1 * * * *")
    cron["status"] = {name: value for name, value in written(cron, HOURLY).items() if value}
    effect = decided(cron, HOURLY, child("nightly-t1")).effect
    assert isinstance(effect, WriteStatus)
    assert effect.fields["activeCount"] == 1
    assert effect.event is None


def test_a_trigger_under_replace_takes_the_place_of_what_is_reserved() -> None:
    status = settled("2026-11-20T03:00", **reservation(name_at(HOURLY)))
    cron = raw_cron(status=status, trigger=1, concurrencyPolicy="Replace")
    fields = written(cron, "2026-11-20T03:10:00")
    assert (reserved_names(fields), fields["missed"]) == (["nightly-t1"], 1)


def test_a_suspended_schedule_heeds_triggers() -> None:
    observed = {"schedule": "0 * * * *", "timeZone": "UTC", "suspend": True}
    status = settled("2026-11-20T03:00", observed=observed)
    fields = written(raw_cron(status=status, trigger=1, suspend=True), "2026-11-20T03:10:00")
    assert reserved_names(fields) == ["nightly-t1"]


def test_the_newest_finished_jobs_are_kept_apart_by_how_they_ended() -> None:
    jobs = [child(f"s{age}", Phase.SUCCEEDED, age=age) for age in range(4)]
    jobs += [child("d0", Phase.DEAD_LETTER, age=9), child("c1", Phase.CANCELLED, age=8)]
    cron = raw_cron(
        status=settled("2026-11-20T03:00"),
        successfulJobsHistoryLimit=2,
        failedJobsHistoryLimit=1,
    )
    effect = decided(cron, "2026-11-20T03:10:00", *jobs).effect
    assert isinstance(effect, DeleteJobs)
    assert {one.name for one in effect.jobs} == {"s2", "s3", "d0"}
    off = decided(cron, "2026-11-20T03:10:00", *jobs, prunes_history=False).effect
    assert not isinstance(off, DeleteJobs)


def test_what_somebody_still_wants_or_a_reservation_names_is_kept() -> None:
    names = ("wanted", "reserved")
    jobs = [child(name, Phase.DEAD_LETTER, has_open_request=name == "wanted") for name in names]
    status = settled("2026-11-20T03:00", **reservation("reserved", by=ME))
    cron = raw_cron(status=status, failedJobsHistoryLimit=0, concurrencyPolicy="Forbid")
    snap = snapshot(cron, *jobs, child("busy"))
    assert not isinstance(decide_cron_job(snap, moment("2026-11-20T03:10:00")).effect, DeleteJobs)


def test_long_names_are_cut_and_told_apart() -> None:
    long, other = "a" * 253, "a" * 252 + "b"
    for name in (run_name(long, 0), trigger_name(long, 1_000_000)):
        assert len(name) <= 253
    assert run_name(long, 0) != run_name(other, 0)
    assert run_name(long, 0) != run_name(long, 60)
    assert run_name("nightly", int(seconds(HOURLY))) == "nightly-20261120t0300z"
    assert cron_label_value("nightly") == "nightly"
    assert cron_label_value("a" * 63) == "a" * 63
    assert len(cron_label_value(long)) == 63
    assert cron_label_value(long) != cron_label_value(other)
    dotted = "a" * 200 + "." * 0 + "-b." + "c" * 50
    assert "--" not in run_name(dotted, 0)


def test_the_status_shows_unfinished_jobs_and_the_last_success() -> None:
    cron = raw_cron(status=settled("2026-11-20T03:00"))
    jobs = [child(f"r{number:03}") for number in range(120)]
    done = child("done", Phase.SUCCEEDED, age=5.5)
    before = child("before", Phase.SUCCEEDED, age=60)
    fields = written(cron, "2026-11-20T03:10:00", *jobs, before, done)
    assert fields["activeCount"] == 120
    assert len(fields["active"]) == 100
    assert fields["active"][-1]["name"] == "r119"
    assert fields["lastSuccessfulTime"] == "2026-11-19T23:59:54.500Z"
    cron["status"] |= fields
    assert decided(cron, "2026-11-20T03:10:00", *jobs, done).effect is None


def test_a_schedule_that_is_being_deleted_does_nothing() -> None:
    cron = raw_cron(status=settled("2026-11-20T02:00"))
    cron["metadata"]["deletionTimestamp"] = "2026-11-20T02:00:00Z"
    assert decided(cron, "2026-11-20T03:00:00").effect is None


def test_a_finished_job_that_bears_no_runs_name_is_no_run_whatever_its_labels() -> None:
    cron = read_cron_job(raw_cron())
    ours = ["nightly-20261120t0300z", "nightly-t1", "nightly-t12"]
    others = [
        "nightly",
        "nightly-t0",
        "nightly-t01",
        "other-t1",
        "nightly-20261120t0300z-r1",
        "key",
    ]
    assert [name for name in [*ours, *others] if child(name).is_run_of(cron)] == ours
    assert not child(ours[0], namespace="elsewhere").is_run_of(cron)
    long = "n" * 250
    assert child(run_name(long, 0)).is_run_of(read_cron_job(raw_cron(long)))
    assert not child(run_name(long + "x", 0)).is_run_of(read_cron_job(raw_cron(long)))


def test_a_run_with_a_key_stays_a_day_whatever_the_limits_say() -> None:
    cron = raw_cron(
        status=settled("2026-11-20T03:00", **shown("2026-11-20T04:00")),
        successfulJobsHistoryLimit=0,
    )
    keyed = child("nightly-t1", Phase.SUCCEEDED, has_dedup_key=True, age=-3600)
    plain = child("nightly-t2", Phase.SUCCEEDED, age=-3600)
    cron["status"]["lastSuccessfulTime"] = "2026-11-20T01:00:00.000Z"
    now = "2026-11-20T03:30:00"
    assert decided(cron, now, keyed, plain).effect == DeleteJobs("history", (plain,))
    assert decided(cron, now, keyed).effect is None
    assert decided(cron, now, keyed).requeue_at == 1060.0
    cron["status"] = settled("2026-11-21T01:00", **shown("2026-11-21T02:00"))
    cron["status"]["lastSuccessfulTime"] = "2026-11-20T01:00:00.000Z"
    assert decided(cron, "2026-11-21T01:00:01", keyed).effect == DeleteJobs("history", (keyed,))


def test_numbers_that_a_schedule_writes_stay_within_the_schema() -> None:
    most = 2**31 - 1
    status = settled("2026-11-20T02:00", missed=most, claims=most)
    fields = written(raw_cron(status=status), "2026-11-20T05:30:00")
    assert (fields["missed"], fields["claims"]) == (most, 1)
    status |= reservation(name_at("2026-11-20T02:00")) | {"claims": most}
    cron = raw_cron(status=status, concurrencyPolicy="Replace", trigger=1)
    assert written(cron, "2026-11-20T02:30:00")["missed"] == most


def test_of_several_times_to_look_again_the_first_counts() -> None:
    status = settled("2026-11-20T03:00", **shown("2026-11-20T04:00"))
    status["lastSuccessfulTime"] = "2026-11-20T03:00:00.000Z"
    cron = raw_cron(status=status, successfulJobsHistoryLimit=0)
    ends = {"completed_at": seconds("2026-11-20T03:00"), "has_dedup_key": True}
    done = child("nightly-t1", Phase.SUCCEEDED, **ends)
    for window, requeue_at in ((3590.0, 1020.0), (3610.0, 1030.0)):
        decision = decided(cron, "2026-11-20T03:59:30", done, dedup_window=window)
        assert decision.effect is None
        assert decision.requeue_at == requeue_at


@pytest.mark.parametrize("reason", ["Triggered", "Backfilling", "NameTaken"])
def test_what_happens_to_a_suspended_schedule_stays_in_its_status(reason: str) -> None:
    observed = {"schedule": "0 * * * *", "timeZone": "UTC", "suspend": True}
    status = settled("2026-11-20T03:00", observed=observed, activeCount=0, reason=reason)
    assert decided(raw_cron(status=status, suspend=True), HOURLY).effect is None
    status["reason"] = "Scheduled"
    assert written(raw_cron(status=status, suspend=True), HOURLY)["reason"] == "Suspended"


@pytest.mark.parametrize(
    ("reason", "now"),
    [("Suspended", "Scheduled"), ("BadSchedule", "Scheduled"), ("Misfired", None)],
)
def test_a_reason_that_no_longer_holds_goes_and_what_happened_last_stays(
    reason: str, now: str | None
) -> None:
    status = settled("2026-11-20T03:00", **shown("2026-11-20T04:00"))
    status |= {"reason": reason, "message": "why"}
    effect = decided(raw_cron(status=status), HOURLY).effect
    assert effect == (now and WriteStatus("show", {"reason": now, "message": None}))


def test_a_change_from_one_bad_schedule_to_another_is_no_news_and_to_another_problem_is() -> None:
    cron = raw_cron(status={}, schedule="5-1 * * * *")
    cron["status"] = {name: value for name, value in written(cron, HOURLY).items() if value}
    for schedule, told in (("6-1 * * * *", None), ("0 0 30 2 *", "NeverFires")):
        cron["spec"]["schedule"] = schedule
        effect = decided(cron, HOURLY).effect
        assert isinstance(effect, WriteStatus)
        assert effect.policy == "baseline"
        assert (effect.event and effect.event.reason) == told


def test_a_time_is_looked_at_when_it_has_come_and_within_a_minute() -> None:
    now = Now(monotonic=1000.0, wall=500.0)
    times = (400.0, 500.0, 530.0, 561.0)
    assert [recheck_at(time, now) for time in times] == [1000.0, 1000.0, 1030.0, 1060.0]


def test_of_several_jobs_that_are_kept_for_their_keys_the_first_to_go_is_waited_for() -> None:
    status = settled("2026-11-20T03:00", **shown("2026-11-20T04:00"))
    status["lastSuccessfulTime"] = "2026-11-20T03:00:00.000Z"
    cron = raw_cron(status=status, successfulJobsHistoryLimit=0)
    jobs = [
        child(f"t{age}", Phase.SUCCEEDED, has_dedup_key=True, age=age - 3 * 3600)
        for age in (0, 20, 10)
    ]
    decision = decided(cron, "2026-11-20T03:00:00", *jobs, dedup_window=50.0)
    assert (decision.effect, decision.requeue_at) == (None, 1030.0)
    late = decided(cron, "2026-11-20T03:00:30", *jobs, dedup_window=50.0)
    assert late.effect == DeleteJobs("history", (jobs[1],))


def test_the_last_success_does_not_go_back_though_its_job_is_gone() -> None:
    status = settled("2026-11-20T03:00", **shown("2026-11-20T04:00"))
    status["lastSuccessfulTime"] = "2026-11-20T00:00:00.000Z"
    cron = raw_cron(status=status)
    now = "2026-11-20T03:10:00"
    assert decided(cron, now, child("before", Phase.SUCCEEDED, age=60)).effect is None
    fields = written(cron, now, child("after", Phase.SUCCEEDED, age=-60))
    assert fields == {"lastSuccessfulTime": "2026-11-20T00:01:00.000Z"}
    soon = written(cron, now, child("soon", Phase.SUCCEEDED, age=-0.5))
    assert soon == {"lastSuccessfulTime": "2026-11-20T00:00:00.500Z"}


def test_only_what_may_do_harm_to_an_unfinished_job_waits_for_a_live_list() -> None:
    assert VerifyUnfinished("").needs_fresh_list
    assert CancelJobs("", ()).needs_fresh_list
    for effect in (WriteStatus("", {}), CreateRuns("", ()), DeleteJobs("", ()), DropRuns("", ())):
        assert not effect.needs_fresh_list
