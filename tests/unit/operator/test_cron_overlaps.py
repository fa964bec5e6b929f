"""Runs that would overlap, and who may create what is reserved."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.schedules import CronReason
from asyncjob_operator.core.schedules.decide import decide_cron_job, drop_runs
from asyncjob_operator.core.schedules.reservation import (
    CREATE_WINDOW_SECONDS,
    REQUEST_TIMEOUT_SECONDS,
    TAKEOVER_DELAY_SECONDS,
)
from asyncjob_operator.core.schedules.snapshot import (
    CancelJobs,
    CreateRuns,
    DropRuns,
    EventToRecord,
    VerifyUnfinished,
    WriteStatus,
)
from asyncjob_operator.core.schedules.view import Run, read_cron_job, runs_to_json
from support.objects.schedules import (
    ME,
    OTHER,
    child,
    decided,
    moment,
    name_at,
    raw_cron,
    reservation,
    reserved_names,
    seconds,
    settled,
    snapshot,
    written,
)

HOURLY = "2026-11-20T03:00"


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
    assert isinstance(effect, CreateRuns)
    assert [run.name for run in effect.runs] == [first]
    assert reserved_names(written(cron, now, child(first), created=frozenset({first}))) == [second]
    waiting = raw_cron(
        status=settled("2026-11-20T03:00", **reservation(second)), concurrencyPolicy="Forbid"
    )
    assert decided(waiting, now, child(first)).effect == VerifyUnfinished("create"), (
        "it may be long over"
    )
    half_verified = decided(
        waiting, now, child(first), child("other"), verified_unfinished=frozenset({"uid-other"})
    )
    assert half_verified.effect == VerifyUnfinished("create")
    shown = written(waiting, now, child(first), verified_unfinished=frozenset({child(first).uid}))
    assert "reserved" not in shown
    effect = decided(waiting, now, child(first, Phase.SUCCEEDED)).effect
    assert isinstance(effect, CreateRuns)


def test_a_decision_about_overlaps_rests_on_a_list() -> None:
    for policy, rests in (("Allow", False), ("Forbid", True), ("Replace", True)):
        cron = raw_cron(status=settled("2026-11-20T02:00"), concurrencyPolicy=policy)
        effect = decided(cron, "2026-11-20T03:00:02").effect
        assert effect
        assert effect.needs_fresh_list is rests


def test_replace_cancels_the_earlier_run_and_starts_when_it_has_ended() -> None:
    cron = raw_cron(status=settled("2026-11-20T02:00"), concurrencyPolicy="Replace")
    now, old = "2026-11-20T03:00:02", child("nightly-old")
    fields = written(cron, now, old)
    assert fields["reason"] == "Replaced"
    cron["status"] |= {**fields, "settledTime": "2026-11-20T03:00:00Z"}
    effect = decided(cron, now, old).effect
    assert effect == CancelJobs("replace", (old,))
    confirmed = frozenset({old.uid})
    assert (
        decided(
            cron, now, replace(old, cancel_requested=True), verified_unfinished=confirmed
        ).effect
        is None
    )
    effect = decided(cron, now, child("nightly-old", Phase.CANCELLED)).effect
    assert isinstance(effect, CreateRuns)


def test_where_there_is_nothing_to_replace_a_run_is_one_like_any_other() -> None:
    cron = raw_cron(status=settled("2026-11-20T02:00"), concurrencyPolicy="Replace")
    assert written(cron, "2026-11-20T03:00:02")["reason"] == "Scheduled"


def test_of_several_runs_that_replace_each_other_the_newest_is_created() -> None:
    status = settled("2026-11-20T03:00", **reservation(name_at(HOURLY)))
    cron = raw_cron(status=status, concurrencyPolicy="Replace", misfirePolicy="FireAll")
    fields = written(cron, "2026-11-20T05:00:02")
    assert reserved_names(fields) == [name_at("2026-11-20T05:00")]
    assert fields["missed"] == 2


def test_allow_adds_to_what_is_reserved() -> None:
    status = settled("2026-11-20T03:00", **reservation(name_at(HOURLY)))
    fields = written(raw_cron(status=status), "2026-11-20T04:00:02", child("x"))
    assert fields["reason"] == "Scheduled"
    assert reserved_names(fields) == [name_at(HOURLY), name_at("2026-11-20T04:00")]
    assert fields["claims"] == 2


def test_only_the_holder_creates_and_only_for_a_while() -> None:
    cron = raw_cron(status=settled("2026-11-20T03:00", **reservation(name_at(HOURLY))))
    now = moment("2026-11-20T03:00:02")
    fresh = snapshot(cron, reserved_at=1000.0 - CREATE_WINDOW_SECONDS + 0.1)
    assert isinstance(decide_cron_job(fresh, now).effect, CreateRuns)
    for sent_at in (None, 1000.0 - CREATE_WINDOW_SECONDS):
        effect = decide_cron_job(snapshot(cron, reserved_at=sent_at), now).effect
        assert isinstance(effect, WriteStatus)
        assert (effect.policy, effect.reserves, effect.fields["claims"]) == ("renew", True, 2)


def test_a_reservation_is_taken_over_when_its_holder_cannot_be_acting_on_it_any_more() -> None:
    status = settled("2026-11-20T03:00", **reservation(name_at(HOURLY), by=OTHER))
    cron = raw_cron(status=status)
    early = decided(
        cron, "2026-11-20T04:00:00", reservation_observed_at=1000.0 - TAKEOVER_DELAY_SECONDS + 0.1
    )
    assert early.effect is None
    assert early.requeue_at == pytest.approx(1000.1)
    effect = decided(
        cron, "2026-11-20T04:00:00", reservation_observed_at=1000.0 - TAKEOVER_DELAY_SECONDS
    ).effect
    assert isinstance(effect, WriteStatus)
    assert (effect.policy, effect.reserves) == ("take-over", True)
    fields: Any = effect.fields
    assert fields["reserved"]["by"] == ME
    assert reserved_names(fields) == [name_at(HOURLY)]
    assert CREATE_WINDOW_SECONDS + REQUEST_TIMEOUT_SECONDS < TAKEOVER_DELAY_SECONDS


def test_what_is_known_to_be_made_is_taken_off_the_list() -> None:
    cron = raw_cron(status=settled("2026-11-20T03:00", **reservation("a", "b")))
    now = "2026-11-20T03:00:02"
    effect = decided(cron, now, created=frozenset({"a"})).effect
    assert isinstance(effect, WriteStatus)
    assert (effect.policy, effect.reserves) == ("created", True)
    assert reserved_names(effect.fields) == ["b"]
    effect = decided(cron, now, created=frozenset({"a", "b"})).effect
    assert isinstance(effect, WriteStatus)
    assert (effect.policy, effect.reserves, effect.fields["reserved"]) == ("created", False, None)


def test_what_takes_the_place_of_another_run_says_so_and_is_no_event() -> None:
    cron = raw_cron(status=settled("2026-11-20T02:00"), concurrencyPolicy="Replace")
    effect = decided(cron, "2026-11-20T03:00:02", child("nightly-old")).effect
    assert isinstance(effect, WriteStatus)
    assert effect.event is None
    assert effect.fields["message"] == ("run for 2026-11-20T03:00:00.000Z in place of nightly-old")


def test_runs_that_can_no_longer_be_in_time_are_struck_off_and_the_others_stay_reserved() -> None:
    late, first, second = (name_at(f"2026-11-20T0{hour}:00") for hour in (1, 2, 3))
    status = settled("2026-11-20T03:00", **reservation(late, first, second))
    cron = read_cron_job(raw_cron(status=status))
    write = drop_runs(cron, cron.runs[:2], CronReason.SKIPPED, "too late")
    assert write.fields == {
        "reserved": {"by": ME, "runs": runs_to_json(cron.runs[2:])},
        "missed": 2,
        "reason": "Skipped",
        "message": "too late",
    }
    assert write.event == EventToRecord(CronReason.SKIPPED, "too late")
    assert (write.policy, write.reserves) == ("drop", False)
    assert drop_runs(cron, cron.runs, CronReason.SKIPPED, "").fields["reserved"] is None


@pytest.mark.parametrize("policy", ["Allow", "Forbid"])
def test_of_runs_that_could_not_be_created_in_time_only_those_of_now_are_left(policy: str) -> None:
    status = settled("2026-11-20T03:00")
    runs = [
        Run(name_at(time), int(seconds(time))) for time in ("2026-11-20T02:00", "2026-11-20T03:00")
    ]
    status |= {"claims": 1, "reserved": {"by": ME, "runs": runs_to_json(runs)}}
    cron = raw_cron(status=status, concurrencyPolicy=policy)
    now = "2026-11-20T03:30:00"
    assert decided(cron, now).effect == DropRuns("late", (runs[0],))
    cron["spec"]["misfirePolicy"] = "Skip"
    assert decided(cron, now).effect == DropRuns("late", tuple(runs))
    cron["spec"]["concurrencyPolicy"] = "Replace"
    effect = decided(cron, now).effect
    assert isinstance(effect, CreateRuns), "it waits for as long as the earlier run takes to end"
    requested = [Run("nightly-t1", runs[0].time, trigger=1), Run("b", runs[0].time, backfill=True)]
    status["reserved"] = {"by": ME, "runs": runs_to_json(requested)}
    effect = decided(raw_cron(status=status, misfirePolicy="Skip"), now).effect
    assert isinstance(effect, CreateRuns)
    assert effect.runs == tuple(requested)


def test_who_is_known_by_a_name_longer_than_a_status_takes_knows_its_own_reservation() -> None:
    me = "operator-" + "x" * 300
    status = settled("2026-11-20T03:00", **reservation(name_at(HOURLY), by=me[:256]))
    effect = decided(raw_cron(status=status), "2026-11-20T03:00:02", identity=me).effect
    assert isinstance(effect, WriteStatus)
    fields: Any = effect.fields
    assert (effect.policy, fields["reserved"]["by"]) == ("renew", me[:256])


@pytest.mark.parametrize(
    ("policy", "reason"), [("Allow", "Skipped"), ("Forbid", "LeftOut"), ("Replace", "Skipped")]
)
def test_times_that_get_no_run_are_missed_and_what_is_reserved_stays(
    policy: str, reason: str
) -> None:
    status = settled("2026-11-20T03:00", missed=1, **reservation("nightly-t1", trigger=1))
    cron = raw_cron(status=status, concurrencyPolicy=policy, misfirePolicy="Skip")
    fields = written(cron, "2026-11-20T05:30:00")
    assert (fields["missed"], fields["settledTime"]) == (3, "2026-11-20T05:00:00.000Z")
    assert fields["reason"] == reason
    assert "reserved" not in fields
