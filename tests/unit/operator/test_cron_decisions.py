"""What a schedule decides: misfires, overlaps, changes, triggers, backfills, history."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.derived_names import label_value, run_name, trigger_name
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.cron.claim import CREATE_SECONDS, REQUEST_SECONDS, TAKEOVER_SECONDS
from asyncjob_operator.core.cron.decide import decide
from asyncjob_operator.core.cron.decision import Cancel, Create, Remove
from asyncjob_operator.core.cron.misfire import fires_at
from asyncjob_operator.core.cron.view import read_cron, stamp
from support.schedules import (
    ME,
    OTHER,
    child,
    decided,
    moment,
    raw_cron,
    reserved_names,
    seconds,
    settled,
    snapshot,
    written,
)

HOURLY = "2026-11-20T03:00"


def name_at(time: str) -> str:
    return run_name("nightly", int(seconds(time)))


def reservation(*names: str, by: str = ME, **run: Any) -> dict[str, Any]:
    runs = [{"name": name, "time": "2026-11-20T03:00:00.000Z", **run} for name in names]
    return {"claims": 1, "reserved": {"by": by, "runs": runs}}


# ---------------------------------------------------------------- what is due


def test_a_time_that_has_come_is_settled_and_reserved_in_one_write() -> None:
    fields = written(raw_cron(status=settled("2026-11-20T02:00")), "2026-11-20T03:00:02")
    assert reserved_names(fields) == ["nightly-20261120t0300z"]
    assert fields["reserved"]["by"] == ME
    assert fields["claims"] == 1
    assert fields["settledTime"] == fields["lastScheduleTime"] == "2026-11-20T03:00:00.000Z"
    assert fields["nextScheduleTime"] == "2026-11-20T04:00:00.000Z"
    assert (fields["reason"], fields["missed"]) == ("Scheduled", 0)


def test_before_its_time_nothing_happens_and_it_is_looked_at_again_then() -> None:
    cron = raw_cron(status=settled("2026-11-20T02:00", **_shown("2026-11-20T03:00")))
    decision = decided(cron, "2026-11-20T02:59:30")
    assert decision.effect is None
    assert decision.look_again_at == 1030.0
    far = decided(cron, "2026-11-20T02:30:00")
    assert far.look_again_at == 1060.0


def _shown(following: str) -> dict[str, Any]:
    return {"activeCount": 0, "nextScheduleTime": stamp(seconds(following))}


def test_nothing_at_or_before_the_settled_time_is_run_whatever_the_clock_says() -> None:
    cron = raw_cron(status=settled("2026-11-20T03:00", **_shown("2026-11-20T04:00")))
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
    fires = fires_at(read_cron(cron), int(seconds(HOURLY)))
    assert 0 <= fires - seconds(HOURLY) <= 600
    before, after = stamp(fires - 1)[:19], stamp(fires)[:19]
    early = decided(cron, before).effect
    assert early is None or "reserved" not in early.fields  # type: ignore[union-attr]  # a write
    assert reserved_names(written(cron, after)) == [name_at(HOURLY)]
    spread = {fires_at(read_cron(raw_cron(f"n{n}", jitterSeconds=60)), 0) for n in range(400)}
    assert spread == set(range(61))


# ---------------------------------------------------------------- misfires


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
    fields = written(cron, stamp(seconds(HOURLY) + late)[:19])
    assert len(reserved_names(fields)) == runs


def test_a_schedule_goes_on_however_many_starts_it_missed() -> None:
    status = settled("2020-01-01T00:00")
    status["observed"] = {**status["observed"], "schedule": "* * * * *"}
    cron = raw_cron(schedule="* * * * *", status=status, misfirePolicy="FireAll", misfireLimit=1000)
    fields = written(cron, MISSED["now"])
    assert len(reserved_names(fields)) == 1000
    assert fields["missed"] == 9000
    assert fields["settledTime"] == "2026-11-21T03:30:00.000Z"


# ---------------------------------------------------------------- overlaps


def test_forbid_leaves_a_run_out_for_good_while_an_earlier_one_is_unfinished() -> None:
    cron = raw_cron(status=settled("2026-11-20T02:00"), concurrencyPolicy="Forbid")
    fields = written(cron, "2026-11-20T03:00:02", child("nightly-earlier"))
    assert "reserved" not in fields
    assert fields["settledTime"] == "2026-11-20T03:00:00.000Z"
    assert (fields["missed"], fields["reason"]) == (1, "LeftOut")
    assert "nightly-earlier is unfinished" in fields["message"]
    assert "lastScheduleTime" not in fields


def test_forbid_counts_a_run_that_is_only_reserved_as_unfinished() -> None:
    status = settled("2026-11-20T03:00", **reservation(name_at(HOURLY)))
    cron = raw_cron(status=status, concurrencyPolicy="Forbid")
    assert written(cron, "2026-11-20T04:00:02")["reason"] == "LeftOut"


def test_forbid_makes_up_for_missed_runs_one_after_another() -> None:
    first, second = name_at("2026-11-20T02:00"), name_at(HOURLY)
    status = settled("2026-11-20T03:00", **reservation(first, second))
    cron = raw_cron(status=status, concurrencyPolicy="Forbid")
    now = "2026-11-20T03:00:02"
    effect = decided(cron, now).effect
    assert isinstance(effect, Create)
    assert [run.name for run in effect.runs] == [first]
    assert reserved_names(written(cron, now, child(first), made=frozenset({first}))) == [second]
    waiting = raw_cron(
        status=settled("2026-11-20T03:00", **reservation(second)), concurrencyPolicy="Forbid"
    )
    shown = written(waiting, now, child(first))
    assert "reserved" not in shown
    effect = decided(waiting, now, child(first, Phase.SUCCEEDED)).effect
    assert isinstance(effect, Create)


def test_a_decision_about_overlaps_rests_on_a_list() -> None:
    for policy, rests in (("Allow", False), ("Forbid", True), ("Replace", True)):
        cron = raw_cron(status=settled("2026-11-20T02:00"), concurrencyPolicy=policy)
        effect = decided(cron, "2026-11-20T03:00:02").effect
        assert effect
        assert effect.rests is rests


def test_replace_cancels_the_earlier_run_and_starts_when_it_has_ended() -> None:
    cron = raw_cron(status=settled("2026-11-20T02:00"), concurrencyPolicy="Replace")
    now, old = "2026-11-20T03:00:02", child("nightly-old")
    fields = written(cron, now, old)
    assert fields["reason"] == "Replaced"
    cron["status"] |= {**fields, "settledTime": "2026-11-20T03:00:00Z"}
    effect = decided(cron, now, old).effect
    assert isinstance(effect, Cancel)
    assert effect.children == (old,)
    assert decided(cron, now, replace(old, cancelling=True)).effect is None
    effect = decided(cron, now, child("nightly-old", Phase.CANCELLED)).effect
    assert isinstance(effect, Create)


def test_of_several_runs_that_replace_each_other_the_newest_is_created() -> None:
    status = settled("2026-11-20T03:00", **reservation(name_at(HOURLY)))
    cron = raw_cron(status=status, concurrencyPolicy="Replace", misfirePolicy="FireAll")
    fields = written(cron, "2026-11-20T05:00:02")
    assert reserved_names(fields) == [name_at("2026-11-20T05:00")]
    assert fields["missed"] == 2


def test_allow_adds_to_what_is_reserved() -> None:
    status = settled("2026-11-20T03:00", **reservation(name_at(HOURLY)))
    fields = written(raw_cron(status=status), "2026-11-20T04:00:02", child("x"))
    assert reserved_names(fields) == [name_at(HOURLY), name_at("2026-11-20T04:00")]
    assert fields["claims"] == 2


# ---------------------------------------------------------------- reservations


def test_only_the_holder_creates_and_only_for_a_while() -> None:
    cron = raw_cron(status=settled("2026-11-20T03:00", **reservation(name_at(HOURLY))))
    now = moment("2026-11-20T03:00:02")
    fresh = snapshot(cron, claim_sent_at=1000.0 - CREATE_SECONDS + 0.1)
    assert isinstance(decide(fresh, now).effect, Create)
    for sent_at in (None, 1000.0 - CREATE_SECONDS):
        effect = decide(snapshot(cron, claim_sent_at=sent_at), now).effect
        assert not isinstance(effect, Create)
        assert effect
        assert effect.fields["claims"] == 2  # type: ignore[union-attr]  # a write, as just seen


def test_a_reservation_is_taken_over_when_its_holder_cannot_be_acting_on_it_any_more() -> None:
    status = settled("2026-11-20T03:00", **reservation(name_at(HOURLY), by=OTHER))
    cron = raw_cron(status=status)
    early = decided(cron, "2026-11-20T04:00:00", claim_seen_at=1000.0 - TAKEOVER_SECONDS + 0.1)
    assert early.effect is None
    assert early.look_again_at == pytest.approx(1000.1)
    fields = written(cron, "2026-11-20T04:00:00", claim_seen_at=1000.0 - TAKEOVER_SECONDS)
    assert fields["reserved"]["by"] == ME
    assert reserved_names(fields) == [name_at(HOURLY)]
    assert CREATE_SECONDS + REQUEST_SECONDS < TAKEOVER_SECONDS


def test_what_is_known_to_be_made_is_taken_off_the_list() -> None:
    cron = raw_cron(status=settled("2026-11-20T03:00", **reservation("a", "b")))
    now = "2026-11-20T03:00:02"
    assert reserved_names(written(cron, now, made=frozenset({"a"}))) == ["b"]
    assert written(cron, now, made=frozenset({"a", "b"}))["reserved"] is None


# ---------------------------------------------------------------- suspension and changes


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
    assert effect.told.reason == reason  # type: ignore[union-attr]  # a write
    fields = written(cron, HOURLY)
    assert fields["reason"] == reason
    assert word in fields["message"]
    assert fields["nextScheduleTime"] is None
    cron["status"] = {key: value for key, value in fields.items() if value is not None}
    assert decided(cron, HOURLY).effect is None
    cron["spec"]["trigger"] = 1
    assert reserved_names(written(cron, HOURLY)) == ["nightly-t1"]


# ---------------------------------------------------------------- triggers


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


# ---------------------------------------------------------------- backfill


RANGE = {"from": "2026-11-10T00:00:00Z", "to": "2026-11-10T03:00:00Z"}


def test_a_backfill_creates_the_runs_of_its_range_in_order_and_is_acknowledged() -> None:
    cron = raw_cron(
        status=settled("2026-11-20T03:00", **_shown("2026-11-20T04:00")),
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
    shown = decided(cron, now, *under_way).effect
    assert shown is None or "reserved" not in shown.fields  # type: ignore[union-attr]  # a write
    fields = written(cron, now, under_way[0], child("b1", Phase.SUCCEEDED, backfill=True))
    assert reserved_names(fields) == [name_at("2026-11-10T02:00")]
    cron["status"] |= {**fields, "reserved": None}
    fields = written(cron, now)
    assert reserved_names(fields) == [name_at("2026-11-10T03:00")]
    assert fields["backfill"]["completed"] is True
    assert fields["reason"] == "Backfilled"


def test_the_same_range_is_acted_on_once_and_another_anew() -> None:
    done = {**RANGE, "total": 4, "created": 4, "completed": True}
    status = settled("2026-11-20T03:00", backfill=done, **_shown("2026-11-20T04:00"))
    assert decided(raw_cron(status=status, backfill=RANGE), "2026-11-20T03:10:00").effect is None
    other = {**RANGE, "from": "2026-11-10T01:00:00Z"}
    fields = written(raw_cron(status=status, backfill=other), "2026-11-20T03:10:00")
    assert (fields["backfill"]["total"], fields["backfill"]["created"]) == (3, 0)


def test_a_range_with_too_many_runs_is_refused_whole_and_says_so() -> None:
    cron = raw_cron(status=settled("2026-11-20T03:00"), backfill={**RANGE, "limit": 3})
    fields = written(cron, "2026-11-20T03:10:00")
    assert (fields["reason"], fields["backfill"]["completed"]) == ("BackfillRefused", True)
    assert "more than 3" in fields["message"]


def test_a_backfill_leaves_to_the_schedule_what_is_not_settled() -> None:
    wide = {"from": "2026-11-20T02:00:00Z", "to": "2026-11-25T00:00:00Z"}
    cron = raw_cron(status=settled("2026-11-20T03:00"), backfill=wide)
    assert written(cron, "2026-11-20T03:10:00")["backfill"]["total"] == 2


@pytest.mark.parametrize("policy", ["Forbid", "Replace"])
def test_where_runs_must_not_overlap_a_backfill_waits_for_each(policy: str) -> None:
    begun = {**RANGE, "total": 4, "created": 1, "through": RANGE["from"], "completed": False}
    status = settled("2026-11-20T03:00", backfill=begun, **_shown("2026-11-20T04:00"))
    wish = {**RANGE, "maxActive": 100}
    cron = raw_cron(status=status, backfill=wish, concurrencyPolicy=policy)
    busy = decided(cron, "2026-11-20T03:10:00", child("nightly-busy")).effect
    assert busy is None or "reserved" not in busy.fields  # type: ignore[union-attr]  # a write
    fields = written(cron, "2026-11-20T03:10:00")
    assert reserved_names(fields) == [name_at("2026-11-10T01:00")]


def test_a_backfill_taken_away_goes_no_further() -> None:
    begun = {**RANGE, "total": 4, "created": 1, "through": RANGE["from"], "completed": False}
    status = settled("2026-11-20T03:00", backfill=begun, **_shown("2026-11-20T04:00"))
    assert decided(raw_cron(status=status), "2026-11-20T03:10:00").effect is None


# ---------------------------------------------------------------- history


def test_the_newest_finished_jobs_are_kept_apart_by_how_they_ended() -> None:
    jobs = [child(f"s{age}", Phase.SUCCEEDED, age=age) for age in range(4)]
    jobs += [child("d0", Phase.DEAD_LETTER, age=9), child("c1", Phase.CANCELLED, age=8)]
    cron = raw_cron(
        status=settled("2026-11-20T03:00"),
        successfulJobsHistoryLimit=2,
        failedJobsHistoryLimit=1,
    )
    effect = decided(cron, "2026-11-20T03:10:00", *jobs).effect
    assert isinstance(effect, Remove)
    assert {one.name for one in effect.children} == {"s2", "s3", "d0"}
    off = decided(cron, "2026-11-20T03:10:00", *jobs, keeps_history=False).effect
    assert not isinstance(off, Remove)


def test_what_somebody_still_wants_or_a_reservation_names_is_kept() -> None:
    names = ("wanted", "reserved")
    jobs = [child(name, Phase.DEAD_LETTER, wished=name == "wanted") for name in names]
    status = settled("2026-11-20T03:00", **reservation("reserved", by=ME))
    cron = raw_cron(status=status, failedJobsHistoryLimit=0, concurrencyPolicy="Forbid")
    snap = snapshot(cron, *jobs, child("busy"))
    assert not isinstance(decide(snap, moment("2026-11-20T03:10:00")).effect, Remove)


# ---------------------------------------------------------------- names and standing


def test_long_names_are_cut_and_told_apart() -> None:
    long, other = "a" * 253, "a" * 252 + "b"
    for name in (run_name(long, 0), trigger_name(long, 1_000_000)):
        assert len(name) <= 253
    assert run_name(long, 0) != run_name(other, 0)
    assert run_name(long, 0) != run_name(long, 60)
    assert run_name("nightly", int(seconds(HOURLY))) == "nightly-20261120t0300z"
    assert label_value("nightly") == "nightly"
    assert len(label_value(long)) == 63
    assert label_value(long) != label_value(other)
    dotted = "a" * 200 + "." * 0 + "-b." + "c" * 50
    assert "--" not in run_name(dotted, 0)


def test_the_status_shows_unfinished_jobs_and_the_last_success() -> None:
    cron = raw_cron(status=settled("2026-11-20T03:00"))
    jobs = [child(f"r{number:03}") for number in range(120)]
    done = child("done", Phase.SUCCEEDED, age=5.5)
    fields = written(cron, "2026-11-20T03:10:00", *jobs, done)
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
