"""When a parked job is queued again."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.phase_change import status_fields, status_json_patch
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.waits import WaitedChild
from asyncjob_operator.core.decision import ChangePhase, ChildrenOver, NoLiveDuplicate
from asyncjob_operator.core.dependencies import AwaitedChildren, Dependencies
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.snapshot import Snapshot
from support.objects.snapshots import at, job, judged, seen, stamp

SLEEP = {"kind": "Sleep", "key": "pause", "until": stamp(30)}
LONGER = {"kind": "Sleep", "key": "longer", "until": stamp(50)}
APPROVAL = {"kind": "Signal", "key": "approval"}
TIMED = {**APPROVAL, "until": stamp(40)}
SENT = {"signals": {"approval": {"payload": True, "sentBy": "ada"}}}
LATER_KIND = {"kind": "Tide", "key": "high"}


def parked(*waiting: dict[str, Any], spec: dict[str, Any] | None = None) -> Snapshot:
    """Return a job that is parked for these waits."""
    timed_only = all(one["kind"] == "Sleep" for one in waiting)
    phase = Phase.SCHEDULED if timed_only else Phase.PENDING
    reason = "Sleeping" if timed_only else "WaitingForSignal"
    return seen(job(phase, reason=reason, attempt=1, parks=1, waiting=waiting, spec=spec or {}))


def woken(snapshot: Snapshot, now: Now) -> tuple[str, ...] | None:
    """Return the waits that are marked as over by the promotion; None if there is none."""
    effect = judged(snapshot, now).effect
    if effect is None:
        return None
    assert isinstance(effect, ChangePhase)
    assert effect.change.target is Phase.QUEUED
    assert effect.change.history_entry is None, "a park leaves no line of history"
    return effect.change.waits_over


def parked_for_children(
    *names: str,
    unfinished: tuple[str, ...] = (),
    unknown: tuple[str, ...] = (),
    until: float | None = None,
    spec: dict[str, Any] | None = None,
) -> Snapshot:
    """Return a job that is parked for children, of which those that are not named have finished."""
    children = [{"name": name, "uid": f"uid-{name}"} for name in names]
    wait: dict[str, Any] = {"kind": "Children", "key": "children", "children": children}
    awaited = AwaitedChildren(
        open=frozenset(f"uid-{name}" for name in unfinished),
        absent=frozenset(f"uid-{name}" for name in unknown),
    )
    timed = {} if until is None else {"until": stamp(until)}
    return replace(parked({**wait, **timed}, spec=spec), dependencies=Dependencies(awaited=awaited))


def verified(snapshot: Snapshot, now: Now) -> object:
    """Return what is confirmed before the job is queued."""
    effect = judged(snapshot, now).effect
    assert isinstance(effect, ChangePhase)
    return effect.precondition


def test_a_sleep_is_over_at_its_time_and_not_before() -> None:
    assert woken(parked(SLEEP), at(29.5)) is None
    assert woken(parked(SLEEP), at(30)) == ("pause",)


def test_of_several_sleeps_the_first_to_end_wakes_and_is_looked_at_in_time() -> None:
    both = parked(LONGER, SLEEP)
    assert judged(both, at(5)).requeue_at == 30
    assert woken(both, at(30)) == ("pause",)
    assert woken(both, at(50)) == ("longer", "pause")


def test_time_is_that_of_the_api_server() -> None:
    slow, fast = replace(at(20), ahead=-10.0), replace(at(40), ahead=11.0)
    assert woken(parked(SLEEP), slow) == ("pause",)
    assert woken(parked(SLEEP), fast) is None
    assert judged(parked(SLEEP), fast).requeue_at == 41


def test_a_signal_that_is_there_wakes_and_is_not_marked_as_over() -> None:
    assert woken(parked(APPROVAL), at(1000)) is None
    assert woken(parked(APPROVAL, spec=SENT), at(0)) == ()
    assert woken(parked(APPROVAL, spec={"signals": {"other": {}}}), at(1000)) is None


def test_a_signal_wakes_a_job_that_also_sleeps() -> None:
    both = parked(SLEEP, APPROVAL, spec=SENT)
    assert woken(both, at(0)) == ()
    assert woken(both, at(30)) == ("pause",)


def test_a_signal_that_has_come_is_in_time_however_late_the_operator_looks() -> None:
    assert woken(parked(TIMED, spec=SENT), at(100)) == ()
    assert woken(parked(TIMED), at(39)) is None
    assert judged(parked(TIMED), at(39)).requeue_at == 40
    assert woken(parked(TIMED), at(40)) == ("approval",)


def test_a_wait_without_an_end_is_looked_at_only_when_something_changes() -> None:
    assert judged(parked(APPROVAL), at(0)).requeue_at is None


@pytest.mark.parametrize("until", [{}, {"until": stamp(0)}])
def test_a_kind_of_a_later_version_is_left_alone(until: dict[str, str]) -> None:
    decision = judged(parked({**LATER_KIND, **until}), at(1000))
    assert decision.effect is None
    assert decision.requeue_at is None
    assert woken(parked({**LATER_KIND, **until}, SLEEP), at(1000)) == ("pause",)


def test_the_promotion_marks_in_the_same_write_what_is_over_by_time() -> None:
    effect = judged(parked(SLEEP, TIMED), at(30)).effect
    assert isinstance(effect, ChangePhase)
    waits = {"pause": {"kind": "Sleep", "until": stamp(30)}, "approval": {"kind": "Signal"}}
    written = status_fields(effect.change, {"waits": waits})["waits"]
    assert written == {**waits, "pause": {**waits["pause"], "over": True}}


def test_a_redrive_forgets_timeouts_of_signals_and_keeps_sleeps() -> None:
    over: JsonObject = {"kind": "Signal", "until": stamp(40), "over": True}
    slept: JsonObject = {"kind": "Sleep", "until": stamp(30), "over": True}
    dead = job(Phase.DEAD_LETTER, spec={"redrive": 1}, attempt=1)
    effect = judged(seen(dead), at(100)).effect
    assert isinstance(effect, ChangePhase)
    assert effect.change.reason is Reason.REDRIVEN
    status: JsonObject = {"phase": "DeadLetter", "waits": {"pause": slept, "approval": over}}
    fields = status_fields(effect.change, status)
    assert fields["waits"] == {"pause": slept, "approval": None}, "as a merge-patch drops it"
    [whole] = [one for one in status_json_patch(fields, status) if one["path"] == "/status/waits"]
    assert whole["value"] == {"pause": slept}
    assert "waits" not in status_fields(effect.change, {"phase": "DeadLetter"})
    other = replace(effect.change, reason=Reason.NOT_BEFORE)
    assert "waits" not in status_fields(other, status)


def test_children_that_have_finished_wake_without_a_read_and_an_unfinished_one_does_not() -> None:
    finished = parked_for_children("a", "b")
    assert (woken(finished, at(0)), verified(finished, at(0))) == ((), None)
    waiting = judged(parked_for_children("a", "b", unfinished=("b",)), at(1000))
    assert (waiting.effect, waiting.requeue_at) == (None, None)


@pytest.mark.parametrize("unknown", [("b",), ("a", "b")], ids=["one of them", "all"])
def test_children_that_are_not_known_are_read_before_their_parent_is_woken(
    unknown: tuple[str, ...],
) -> None:
    snapshot = parked_for_children("a", "b", unknown=unknown)
    to_read = tuple(WaitedChild(name, f"uid-{name}") for name in unknown)
    assert woken(snapshot, at(0)) == ()
    assert verified(snapshot, at(0)) == ChildrenOver("ns", to_read)


def test_nothing_but_its_children_is_read_for_a_parked_job_that_holds_an_id() -> None:
    held = {"deduplicationId": "d"}
    assert verified(parked_for_children("a", spec=held), at(0)) is None
    assert isinstance(
        verified(parked_for_children("a", unknown=("a",), spec=held), at(0)), ChildrenOver
    )
    fresh = seen(job(Phase.PENDING, reason="Suspended", spec=held))
    assert verified(fresh, at(0)) == NoLiveDuplicate("ns", "uid-job", "d")


def test_a_wait_for_children_ends_by_time_unless_they_have_finished_first() -> None:
    late = parked_for_children("a", unfinished=("a",), until=30)
    assert judged(late, at(29)).requeue_at == 30
    assert woken(late, at(29)) is None
    assert woken(late, at(30)) == ("children",)
    assert woken(parked_for_children("a", until=30), at(1000)) == ()


def test_children_that_are_not_known_are_read_for_a_minute_before_time_ends_their_wait() -> None:
    unread = parked_for_children("a", unknown=("a",), until=30)
    assert woken(unread, at(89.9)) == ()
    assert verified(unread, at(89.9)) == ChildrenOver("ns", (WaitedChild("a", "uid-a"),))
    assert woken(unread, at(90)) == ("children",)
    assert verified(unread, at(90)) is None
