"""What every change of phase carries, and the bodies that write it."""

from typing import Any

import pytest

from asyncjob.lifecycle import phase_change
from asyncjob.lifecycle.claim import Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phase_change import (
    MAX_HISTORY_ENTRIES,
    change_phase,
    status_fields,
    status_json_patch,
    status_merge_patch,
    succeed,
)
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import BUILT_IN_POLICY, Category
from support.objects.builders import at, running, stored

ME = LeaseHolder("worker-0", "worker-0-uid", "worker-0/1")


def view(phase: Phase, **status: Any) -> JobView:
    return read_job(stored(status={"phase": phase.value, **status}, notBefore=at(60)))


@pytest.mark.parametrize(
    ("phase", "condition"),
    [("Succeeded", "Complete"), ("DeadLetter", "Failed"), ("Cancelled", "Cancelled")],
)
def test_finishing_sets_time_and_condition(phase: str, condition: str) -> None:
    fields = change_phase(view(Phase.QUEUED), Phase(phase), now=at(3), message="why").fields
    conditions: Any = fields["conditions"]
    assert conditions[0]["type"] == condition
    assert fields["completionTime"] == at(3)
    assert conditions[0]["status"] == "True"
    assert (len(conditions), conditions[0]["message"]) == (1, "why")


@pytest.mark.parametrize(("end", "seconds"), [(42.5, 42.5), (-9, 0.0)])
def test_finishing_tells_how_long_it_took_since_the_first_start(end: float, seconds: float) -> None:
    fields = change_phase(running(firstStartTime=at()), Phase.SUCCEEDED, now=at(end)).fields
    assert fields["durationSeconds"] == seconds


def test_a_duration_is_told_in_milliseconds_whoever_wrote_the_start() -> None:
    began = at().replace(".000Z", ".0006Z")
    fields = change_phase(running(firstStartTime=began), Phase.SUCCEEDED, now=at(1)).fields
    assert fields["durationSeconds"] == 0.999


def test_a_job_that_never_started_has_no_duration() -> None:
    assert (
        "durationSeconds" not in change_phase(view(Phase.QUEUED), Phase.CANCELLED, now=at()).fields
    )


def test_a_redrive_takes_back_time_and_condition_and_gives_fresh_budgets() -> None:
    dead = read_job(stored(status={"phase": "DeadLetter", "retries": 3}, redrive=2))
    fields = phase_change.redrive(dead, now=at()).fields
    taken = ("completionTime", "conditions", "durationSeconds")
    assert [fields[name] for name in taken] == [None, None, None]
    assert [fields[name] for name in ("retries", "crashes", "releases")] == [0, 0, 0]
    assert fields["redrives"] == 2


def test_leaving_retrying_takes_back_the_delay() -> None:
    fields = phase_change.promote(view(Phase.RETRYING), now=at()).fields
    assert (fields["nextAttemptTime"], fields["retryDelaySeconds"]) == (None, None)


def test_promoting_admits_a_job_with_a_gate_and_no_other() -> None:
    assert phase_change.promote(view(Phase.SCHEDULED), now=at()).fields["admitted"] is True
    open_job = read_job(stored(status={"phase": "Pending"}))
    assert "admitted" not in phase_change.promote(open_job, now=at()).fields


def test_the_entry_that_ends_an_attempt_says_who_ran_it_and_since_when() -> None:
    entry = succeed(running(), now=at(3)).history_entry
    assert entry == {
        "time": at(3),
        "phase": "Succeeded",
        "attempt": 1,
        "worker": "worker-0/1",
        "startTime": at(),
    }


def test_the_entry_of_a_change_for_a_reason_says_it_as_the_status_does() -> None:
    held = phase_change.hold(view(Phase.QUEUED), Reason.SUSPENDED, "by spec.suspend", now=at(3))
    assert held.history_entry == {
        "time": at(3),
        "phase": "Pending",
        "attempt": 0,
        "reason": "Suspended",
        "message": "by spec.suspend",
    }
    assert held.fields["reason"] == "Suspended"


@pytest.mark.parametrize("category", Category)
def test_a_dead_letter_shows_the_category_that_it_was_given(category: Category) -> None:
    for reason in Reason:
        fields = phase_change.dead_letter(
            view(Phase.QUEUED), reason, category, "why", now=at()
        ).fields
        assert fields["error"] == {"type": reason, "category": category, "message": "why"}


def test_the_history_grows_by_one_entry() -> None:
    fields = status_fields(succeed(running(), now=at()), {"history": [{"phase": "Queued"}]})
    history: Any = fields["history"]
    assert [entry["phase"] for entry in history] == ["Queued", "Succeeded"]
    assert "historyOmitted" not in fields


def test_the_history_keeps_the_newest_entries_and_counts_what_it_cut() -> None:
    old: Any = [{"phase": "Queued", "attempt": number} for number in range(MAX_HISTORY_ENTRIES)]
    fields = status_fields(succeed(running(), now=at()), {"history": old, "historyOmitted": 4})
    history: Any = fields["history"]
    assert len(history) == MAX_HISTORY_ENTRIES
    assert (history[0], history[-1]["phase"]) == (old[1], "Succeeded")
    assert fields["historyOmitted"] == 5


def test_a_history_that_is_just_full_has_lost_nothing() -> None:
    old: Any = [{"phase": "Queued"}] * (MAX_HISTORY_ENTRIES - 1)
    fields = status_fields(succeed(running(), now=at()), {"history": old})
    assert len(fields["history"]) == MAX_HISTORY_ENTRIES  # type: ignore[arg-type]  # a list
    assert "historyOmitted" not in fields


def test_long_messages_are_cut_with_a_mark_and_shorter_in_the_history() -> None:
    moved = change_phase(view(Phase.QUEUED), Phase.PENDING, now=at(), message="m" * 5000)
    assert len(str(moved.fields["message"])) == 1024
    assert moved.history_entry is not None
    assert len(str(moved.history_entry["message"])) == 256
    assert str(moved.history_entry["message"]).endswith("…")


def test_a_json_patch_replaces_whole_fields_and_removes_only_what_is_there() -> None:
    fields: Any = {"phase": "Succeeded", "lease": None, "admitted": None, "result": {"a": None}}
    assert status_json_patch(fields, {"phase": "Running", "lease": {}}) == [
        {"op": "add", "path": "/status/phase", "value": "Succeeded"},
        {"op": "remove", "path": "/status/lease"},
        {"op": "add", "path": "/status/result", "value": {"a": None}},
    ]


def test_a_merge_patch_holds_for_one_version_only() -> None:
    assert status_merge_patch({"reruns": 1}, "42") == {
        "metadata": {"resourceVersion": "42"},
        "status": {"reruns": 1},
    }


def claimed(**candidate: Any) -> Any:
    seen = Candidate("job", "42", "test", **candidate)
    return claim_patch(seen, ME, BUILT_IN_POLICY, claim_id="c", now=at())


def test_a_claim_raises_the_attempt_and_names_its_holder() -> None:
    body = claimed(attempt=4)
    assert body["metadata"] == {"resourceVersion": "42"}
    assert body["status"]["attempt"] == 5
    assert body["status"]["claim"] == "c"
    assert body["status"]["lease"]["holderUID"] == "worker-0-uid"
    assert body["status"]["lease"]["renewals"] == 0
    assert body["status"]["lease"]["durationSeconds"] == BUILT_IN_POLICY.lease_duration_seconds
    assert body["status"]["effective"] == BUILT_IN_POLICY.to_json()


def test_only_the_first_claim_sets_the_first_start() -> None:
    assert claimed()["status"]["firstStartTime"] == at()
    assert "firstStartTime" not in claimed(attempt=1)["status"]


@pytest.mark.parametrize(
    ("decided", "target", "reason"),
    [
        (phase_change.schedule(view(Phase.QUEUED), now=at()), Phase.SCHEDULED, Reason.NOT_BEFORE),
        (
            phase_change.hold(view(Phase.QUEUED), Reason.SUSPENDED, "", now=at()),
            Phase.PENDING,
            Reason.SUSPENDED,
        ),
        (
            phase_change.dead_letter(
                view(Phase.QUEUED), Reason.UNKNOWN_TYPE, Category.NOT_FOUND, "", now=at()
            ),
            Phase.DEAD_LETTER,
            Reason.UNKNOWN_TYPE,
        ),
        (
            phase_change.cancel_waiting_job(
                view(Phase.DEAD_LETTER), Reason.DISMISSED, "", now=at()
            ),
            Phase.CANCELLED,
            Reason.DISMISSED,
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_moves_outside_running_clear_the_admission(
    decided: Any, target: Phase, reason: Reason
) -> None:
    assert (decided.target, decided.reason) == (target, reason)
    assert decided.fields["admitted"] is None


def test_every_change_of_phase_says_when_it_was_and_why() -> None:
    change = change_phase(view(Phase.QUEUED), Phase.PENDING, now=at(3), reason=Reason.SUSPENDED)
    assert change.fields == {
        "phase": "Pending",
        "reason": "Suspended",
        "message": None,
        "lastTransitionTime": at(3),
        "lastUpdateTime": at(3),
    }


@pytest.mark.parametrize(
    ("reason", "stored"), [(None, "Cancelled"), (Reason.DUPLICATE, "Duplicate")]
)
def test_the_condition_has_the_reason_or_else_the_phase(reason: Reason | None, stored: str) -> None:
    fields = change_phase(view(Phase.QUEUED), Phase.CANCELLED, now=at(3), reason=reason).fields
    assert fields["conditions"] == [
        {
            "type": "Cancelled",
            "status": "True",
            "reason": stored,
            "message": "",
            "lastTransitionTime": at(3),
        }
    ]


def test_a_message_is_cut_where_it_is_longer_than_the_schema_allows() -> None:
    assert phase_change.truncate("x" * 1024) == "x" * 1024
    assert phase_change.truncate("x" * 1025) == "x" * 1023 + "…"
