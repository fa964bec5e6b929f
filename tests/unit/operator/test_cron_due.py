"""When a cron job owes a run: on time, late, and after a downtime."""

from typing import Any

import pytest

from asyncjob_operator.core.schedules.due_runs import fires_at
from asyncjob_operator.core.schedules.view import format_epoch, read_cron_job
from support.objects.schedules import (
    ME,
    decided,
    name_at,
    raw_cron,
    reserved_names,
    seconds,
    settled,
    shown,
    written,
)

HOURLY = "2026-11-20T03:00"


def test_a_time_that_has_come_is_settled_and_reserved_in_one_write() -> None:
    fields = written(raw_cron(status=settled("2026-11-20T02:00")), "2026-11-20T03:00:02")
    assert reserved_names(fields) == ["nightly-20261120t0300z"]
    assert fields["reserved"]["by"] == ME
    assert fields["claims"] == 1
    assert fields["settledTime"] == fields["lastScheduleTime"] == "2026-11-20T03:00:00.000Z"
    assert fields["nextScheduleTime"] == "2026-11-20T04:00:00.000Z"
    assert (fields["reason"], fields["missed"]) == ("Scheduled", 0)


def test_before_its_time_nothing_happens_and_it_is_looked_at_again_then() -> None:
    cron = raw_cron(status=settled("2026-11-20T02:00", **shown("2026-11-20T03:00")))
    decision = decided(cron, "2026-11-20T02:59:30")
    assert decision.effect is None
    assert decision.requeue_at == 1030.0
    far = decided(cron, "2026-11-20T02:30:00")
    assert far.requeue_at == 1060.0


def test_nothing_at_or_before_the_settled_time_is_run_whatever_the_clock_says() -> None:
    cron = raw_cron(status=settled("2026-11-20T03:00", **shown("2026-11-20T04:00")))
    for now in ("2026-11-20T03:00:00", "2026-11-19T03:00:00", "2026-11-20T03:59:59"):
        assert decided(cron, now).effect is None


def test_the_last_scheduled_time_guards_where_the_settled_time_does_not() -> None:
    last = {"lastScheduleTime": "2026-11-20T03:00:00Z"}
    settled_at_last = decided(raw_cron(status=settled("2026-11-20T03:00")), "2026-11-20T03:00:30")
    earlier = settled("2026-11-20T00:00", **last)
    for status in (earlier, {**earlier, "settledTime": None}):
        assert decided(raw_cron(status=status), "2026-11-20T03:00:30") == settled_at_last


def test_a_new_schedule_owes_nothing_for_before_its_creation() -> None:
    fields = written(raw_cron(status={}), "2026-11-01T00:00:10")
    assert fields["settledTime"] == "2026-11-01T00:00:00.000Z"
    assert fields["nextScheduleTime"] == "2026-11-01T01:00:00.000Z"
    assert "reserved" not in fields


def test_jitter_puts_a_run_off_but_not_its_name_and_all_agree_on_it() -> None:
    cron = raw_cron(status=settled("2026-11-20T02:00"), jitterSeconds=600)
    fires = fires_at(read_cron_job(cron), int(seconds(HOURLY)))
    assert 0 <= fires - seconds(HOURLY) <= 600
    before, after = format_epoch(fires - 1)[:19], format_epoch(fires)[:19]
    early = decided(cron, before).effect
    assert early is None or "reserved" not in early.fields  # type: ignore[union-attr]  # a write
    assert reserved_names(written(cron, after)) == [name_at(HOURLY)]
    spread = {fires_at(read_cron_job(raw_cron(f"n{n}", jitterSeconds=60)), 0) for n in range(400)}
    assert spread == set(range(61))


MISSED = {"now": "2026-11-21T03:30:00", "since": "2026-11-20T03:00"}


@pytest.mark.parametrize(
    ("policy", "runs", "missed"),
    [
        ({"misfirePolicy": "Skip"}, [], 24),
        ({"misfirePolicy": "FireOnce"}, ["2026-11-21T03:00"], 23),
        (
            {"misfirePolicy": "FireAll", "misfireLimit": 3},
            ["2026-11-21T01:00", "2026-11-21T02:00", "2026-11-21T03:00"],
            21,
        ),
    ],
)
def test_after_a_day_of_downtime_each_policy_does_what_it_says(
    policy: dict[str, Any], runs: list[str], missed: int
) -> None:
    fields = written(raw_cron(status=settled(MISSED["since"]), **policy), MISSED["now"])
    assert reserved_names(fields) == [name_at(time) for time in runs]
    assert fields["missed"] == missed
    assert fields["settledTime"] == "2026-11-21T03:00:00.000Z"
    assert fields["reason"] == ("Skipped" if not runs else "Misfired")
    assert "24 times missed" in fields["message"]


def test_fire_all_makes_up_for_every_missed_run_within_its_limit() -> None:
    cron = raw_cron(status=settled(MISSED["since"]), misfirePolicy="FireAll")
    assert len(reserved_names(written(cron, MISSED["now"]))) == 24


def test_a_run_on_time_is_the_one_for_all_that_were_missed() -> None:
    cron = raw_cron(status=settled(MISSED["since"]), misfirePolicy="FireOnce")
    fields = written(cron, "2026-11-21T03:00:20")
    assert reserved_names(fields) == [name_at("2026-11-21T03:00")]
    assert fields["missed"] == 23


def test_skip_runs_what_is_within_the_starting_deadline() -> None:
    cron = raw_cron(
        status=settled(MISSED["since"]), misfirePolicy="Skip", startingDeadlineSeconds=5400
    )
    fields = written(cron, MISSED["now"])
    assert reserved_names(fields) == [name_at("2026-11-21T02:00"), name_at("2026-11-21T03:00")]
    assert fields["missed"] == 22


def test_fire_once_runs_all_that_are_on_time() -> None:
    cron = raw_cron(status=settled(MISSED["since"]), startingDeadlineSeconds=5400)
    fields = written(cron, MISSED["now"])
    assert reserved_names(fields) == [name_at("2026-11-21T02:00"), name_at("2026-11-21T03:00")]


@pytest.mark.parametrize(("late", "runs"), [(60, 1), (61, 0)])
def test_without_a_deadline_a_run_is_on_time_for_a_minute(late: int, runs: int) -> None:
    cron = raw_cron(status=settled("2026-11-20T02:00"), misfirePolicy="Skip")
    fields = written(cron, format_epoch(seconds(HOURLY) + late)[:19])
    assert len(reserved_names(fields)) == runs


def test_a_schedule_goes_on_however_many_starts_it_missed() -> None:
    status = settled("2020-01-01T00:00")
    status["observed"] = {**status["observed"], "schedule": "* * * * *"}
    cron = raw_cron(schedule="* * * * *", status=status, misfirePolicy="FireAll", misfireLimit=1000)
    fields = written(cron, MISSED["now"])
    assert len(reserved_names(fields)) == 1000
    assert fields["missed"] == 9000
    assert fields["settledTime"] == "2026-11-21T03:30:00.000Z"


@pytest.mark.parametrize(("late", "runs"), [(0, 1), (5, 1), (6, 0)])
def test_no_deadline_is_shorter_than_what_the_operator_itself_may_take(
    late: int, runs: int
) -> None:
    cron = raw_cron(
        status=settled("2026-11-20T02:00"), misfirePolicy="Skip", startingDeadlineSeconds=0
    )
    fields = written(cron, f"2026-11-20T03:00:0{late}")
    assert len(reserved_names(fields)) == runs
    assert fields.get("missed", 0) == 1 - runs
