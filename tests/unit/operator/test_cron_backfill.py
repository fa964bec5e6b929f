"""Runs of a range that lies in the past, on demand."""

import time

import pytest

from asyncjob.lifecycle.phases import Phase
from support.objects.schedules import (
    child,
    decided,
    name_at,
    raw_cron,
    reservation,
    reserved_names,
    settled,
    shown,
    written,
)

RANGE = {"from": "2026-11-10T00:00:00Z", "to": "2026-11-10T03:00:00Z"}


def test_a_backfill_creates_the_runs_of_its_range_in_order_and_is_acknowledged() -> None:
    cron = raw_cron(
        status=settled("2026-11-20T03:00", **shown("2026-11-20T04:00")),
        backfill={**RANGE, "maxActive": 2},
    )
    now = "2026-11-20T03:10:00"
    cron["status"] |= written(cron, now)
    assert cron["status"]["backfill"]["total"] == 4
    fields = written(cron, now)
    assert reserved_names(fields) == [name_at("2026-11-10T00:00"), name_at("2026-11-10T01:00")]
    assert all(run["backfill"] for run in fields["reserved"]["runs"])
    assert not {"lastScheduleTime", "settledTime"} & fields.keys()
    cron["status"] |= {**fields, "reserved": None, "activeCount": 2, "active": []}
    under_way = [child(f"b{number}", backfill=True) for number in range(2)]
    told = decided(cron, now, *under_way).effect
    assert told is None or "reserved" not in told.fields  # type: ignore[union-attr]  # a write
    fields = written(cron, now, under_way[0], child("b1", Phase.SUCCEEDED, backfill=True))
    assert reserved_names(fields) == [name_at("2026-11-10T02:00")]
    cron["status"] |= {**fields, "reserved": None}
    fields = written(cron, now)
    assert reserved_names(fields) == [name_at("2026-11-10T03:00")]
    assert fields["backfill"]["completed"] is True
    assert fields["reason"] == "Backfilled"


def test_the_same_range_is_acted_on_once_and_another_again() -> None:
    done = {**RANGE, "total": 4, "created": 4, "completed": True}
    status = settled("2026-11-20T03:00", backfill=done, **shown("2026-11-20T04:00"))
    assert decided(raw_cron(status=status, backfill=RANGE), "2026-11-20T03:10:00").effect is None
    other = {**RANGE, "from": "2026-11-10T01:00:00Z"}
    fields = written(raw_cron(status=status, backfill=other), "2026-11-20T03:10:00")
    assert (fields["backfill"]["total"], fields["backfill"]["created"]) == (3, 0)


def test_a_range_with_too_many_runs_is_refused_whole_and_says_so() -> None:
    cron = raw_cron(status=settled("2026-11-20T03:00"), backfill={**RANGE, "limit": 3})
    fields = written(cron, "2026-11-20T03:10:00")
    assert (fields["reason"], fields["backfill"]["completed"]) == ("BackfillRefused", True)
    assert "more than 3" in fields["message"]


def test_a_range_may_hold_as_many_runs_as_its_limit() -> None:
    cron = raw_cron(status=settled("2026-11-20T03:00"), backfill={**RANGE, "limit": 4})
    fields = written(cron, "2026-11-20T03:10:00")
    assert (fields["reason"], fields["backfill"]["total"]) == ("Backfilling", 4)


def test_a_range_without_any_time_is_acknowledged_at_once() -> None:
    between = {"from": "2026-11-10T00:10:00Z", "to": "2026-11-10T00:50:00Z"}
    cron = raw_cron(status=settled("2026-11-20T03:00"), backfill=between)
    fields = written(cron, "2026-11-20T03:10:00")
    assert (fields["reason"], fields["backfill"]["completed"]) == ("Backfilled", True)
    assert (fields["backfill"]["total"], fields["backfill"]["created"]) == (0, 0)
    assert "no scheduled time" in fields["message"]


def test_a_backfill_leaves_to_the_schedule_what_is_not_settled() -> None:
    wide = {"from": "2026-11-20T02:00:00Z", "to": "2026-11-25T00:00:00Z"}
    cron = raw_cron(status=settled("2026-11-20T03:00"), backfill=wide)
    assert written(cron, "2026-11-20T03:10:00")["backfill"]["total"] == 2


def test_a_backfill_of_a_suspended_schedule_holds_all_that_has_passed() -> None:
    wide = {"from": "2026-11-20T02:00:00Z", "to": "2026-11-25T00:00:00Z"}
    observed = {"schedule": "0 * * * *", "timeZone": "UTC", "suspend": True}
    status = settled("2026-11-20T03:00", observed=observed)
    cron = raw_cron(status=status, backfill=wide, suspend=True)
    assert written(cron, "2026-11-20T05:10:00")["backfill"]["total"] == 4


def test_a_backfill_holds_no_time_that_lies_ahead_though_it_was_settled_by_another_clock() -> None:
    wide = {"from": "2026-11-20T02:00:00Z", "to": "2026-11-25T00:00:00Z"}
    cron = raw_cron(status=settled("2026-11-20T09:00"), backfill=wide)
    assert written(cron, "2026-11-20T03:10:00")["backfill"]["total"] == 2


@pytest.mark.parametrize("policy", ["Forbid", "Replace"])
def test_where_runs_must_not_overlap_a_backfill_waits_for_each(policy: str) -> None:
    begun = {**RANGE, "total": 4, "created": 1, "through": RANGE["from"], "completed": False}
    status = settled("2026-11-20T03:00", backfill=begun, **shown("2026-11-20T04:00"))
    control = {**RANGE, "maxActive": 100}
    cron = raw_cron(status=status, backfill=control, concurrencyPolicy=policy)
    busy = decided(cron, "2026-11-20T03:10:00", child("nightly-busy")).effect
    assert busy is None or "reserved" not in busy.fields  # type: ignore[union-attr]  # a write
    fields = written(cron, "2026-11-20T03:10:00")
    assert reserved_names(fields) == [name_at("2026-11-10T01:00")]


def test_a_backfill_taken_away_goes_no_further() -> None:
    begun = {**RANGE, "total": 4, "created": 1, "through": RANGE["from"], "completed": False}
    status = settled("2026-11-20T03:00", backfill=begun, **shown("2026-11-20T04:00"))
    assert decided(raw_cron(status=status), "2026-11-20T03:10:00").effect is None


@pytest.mark.parametrize("schedule", ["0 0 29 2 MON#5", "* * 29 2 *", "*/7 * 31 12 SUN"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Dublin"])
def test_a_range_of_a_thousand_years_holds_nobody_up(schedule: str, zone: str) -> None:
    control = {"from": "1000-01-01T00:00:00+14:00", "to": "9999-12-31T23:59:59-14:00"}
    cron = raw_cron(schedule=schedule, timeZone=zone, backfill=control)
    cron["status"]["settledTime"] = "2026-11-20T02:00:00.000Z"
    began = time.process_time()
    fields = written(cron, "2026-11-20T02:30:00")
    assert time.process_time() - began < 0.5
    assert fields["backfill"]["from"] == "1000-01-01T00:00:00.000Z"
    assert fields["backfill"]["to"] == "9999-12-31T23:59:59.000Z"


def test_no_time_before_1970_is_looked_for() -> None:
    control = {"from": "1000-01-01T00:00:00Z", "to": "1980-01-01T00:00:00Z", "limit": 1000}
    fields = written(raw_cron(schedule="0 0 29 2 *", backfill=control), "2026-11-20T02:30:00")
    assert fields["backfill"]["total"] == 2
    from_then = {"from": "1970-01-01T00:00:00Z", "to": "1970-01-01T03:00:00Z"}
    cron = raw_cron(status=settled("2026-11-20T02:00"), backfill=from_then)
    fields = written(cron, "2026-11-20T02:30:00")
    assert fields["backfill"]["total"] == 4


def test_a_backfill_with_as_many_runs_under_way_as_it_may_have_waits_in_silence() -> None:
    begun = {**RANGE, "total": 4, "created": 1, "through": RANGE["from"], "completed": False}
    run = child("nightly-20261110t0000z", backfill=True)
    active = {"active": [{"name": run.name, "uid": run.uid}], "activeCount": 1}
    following = shown("2026-11-20T04:00")
    status = settled("2026-11-20T03:00", backfill=begun, **{**following, **active})
    cron = raw_cron(status=status, backfill=RANGE)
    assert decided(cron, "2026-11-20T03:10:00", run).effect is None
    cron["spec"]["backfill"] = {**RANGE, "maxActive": 2}
    assert reserved_names(written(cron, "2026-11-20T03:10:00", run)) == [
        name_at("2026-11-10T01:00")
    ]


def test_a_backfill_creates_no_more_runs_than_it_has_counted() -> None:
    begun = {**RANGE, "total": 2, "created": 1, "through": RANGE["from"], "completed": False}
    status = settled("2026-11-20T03:00", backfill=begun)
    cron = raw_cron(status=status, backfill={**RANGE, "maxActive": 100})
    fields = written(cron, "2026-11-20T03:10:00")
    assert reserved_names(fields) == [name_at("2026-11-10T01:00")]
    assert (fields["backfill"]["created"], fields["backfill"]["completed"]) == (2, True)


@pytest.mark.parametrize(("start", "total"), [("00", 4), ("00.500", 3), ("01", 3)])
def test_a_backfill_begins_with_the_first_time_that_is_not_before_its_range(
    start: str, total: int
) -> None:
    asked = {**RANGE, "from": f"2026-11-10T00:00:{start}Z"}
    cron = raw_cron(status=settled("2026-11-20T03:00"), backfill=asked)
    fields = written(cron, "2026-11-20T03:10:00")
    assert fields["backfill"]["total"] == total
    cron["status"] |= fields
    begun = name_at("2026-11-10T00:00" if total == 4 else "2026-11-10T01:00")
    assert reserved_names(written(cron, "2026-11-20T03:10:00")) == [begun]


def test_reserved_runs_of_a_backfill_count_as_under_way() -> None:
    begun = {**RANGE, "total": 4, "created": 1, "through": RANGE["from"], "completed": False}
    reserved = reservation(name_at("2026-11-10T00:00"), backfill=True)
    status = settled("2026-11-20T03:00", backfill=begun, **reserved)
    for most, policy in ((1, "create"), (2, "backfill")):
        cron = raw_cron(status=status, backfill={**RANGE, "maxActive": most})
        effect = decided(cron, "2026-11-20T03:10:00").effect
        assert effect
        assert effect.policy == policy
