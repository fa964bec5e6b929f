"""`deadlineSeconds`: whatever the job is at, it ends once the deadline has passed."""

from dataclasses import replace
from typing import Any

import pytest

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_operator.core.decision import ChangePhase, RedriveRefusal, RefuseRedrive
from asyncjob_operator.core.liveness import HolderStatus
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import DecisionOptions, QueueView
from asyncjob_operator.telemetry.metrics import RECOVERY_REASONS
from support.objects.snapshots import at, judged, moved, pod, raw, running, seen, stamp

LIMIT = 30
NAP: JsonObject = {"kind": "Sleep", "key": "nap", "until": stamp(3600)}
APPROVAL: JsonObject = {"kind": "Signal", "key": "approval"}
ENDED = ("Cancelled", "DeadlineExceeded")


def limited(phase: Phase = Phase.QUEUED, spec: dict[str, Any] | None = None, **status: Any) -> Any:
    """Return a job whose deadline is 30 s after moment 0, in which it was created."""
    fields: dict[str, Any] = {"phase": phase.value, **status}
    if phase is Phase.RUNNING:
        fields = {**running(duration=600), **fields}
    obj: Any = raw(spec={"deadlineSeconds": LIMIT, **(spec or {})}, **fields)
    obj["metadata"]["creationTimestamp"] = stamp(0)
    return read_job(obj)


@pytest.mark.parametrize(
    "job",
    [
        limited(),
        limited(admitted=True),
        limited(attempt=2, retries=1, redrives=1, spec={"redrive": 1}),
        limited(Phase.PENDING, {"suspend": True}, reason="Suspended"),
        limited(Phase.PENDING, reason="WaitingForDependency"),
        limited(Phase.PENDING, attempt=1, reason="WaitingForSignal", waiting=[APPROVAL]),
        limited(Phase.SCHEDULED, {"notBefore": stamp(600)}, reason="NotBefore"),
        limited(Phase.SCHEDULED, attempt=1, reason="Sleeping", waiting=[NAP]),
        limited(Phase.RETRYING, attempt=1, retries=1, retryDelaySeconds=600.0),
    ],
    ids=lambda job: f"{job.phase}-{job.reason or job.attempt}",
)
def test_a_job_that_no_worker_holds_ends_at_its_deadline(job: JobView) -> None:
    snapshot = seen(job)
    assert moved(snapshot, at(LIMIT - 0.1)) != ENDED
    assert moved(snapshot, at(LIMIT)) == ENDED


@pytest.mark.parametrize("waits", [[NAP], [APPROVAL]])
def test_a_parked_job_ends_where_it_stands_with_a_line_of_history(waits: list[JsonObject]) -> None:
    phase = Phase.SCHEDULED if waits == [NAP] else Phase.PENDING
    effect = judged(seen(limited(phase, attempt=1, waiting=waits)), at(LIMIT)).effect
    assert isinstance(effect, ChangePhase)
    assert effect.change.fields["waiting"] is None
    assert effect.change.history_entry is not None
    message = "not finished within deadlineSeconds, 30 s from its creation"
    assert effect.change.history_entry["message"] == message


def test_a_wait_that_is_over_at_the_deadline_wakes_nobody() -> None:
    over = {**NAP, "until": stamp(LIMIT)}
    snapshot = seen(limited(Phase.SCHEDULED, attempt=1, waiting=[over]))
    assert moved(snapshot, at(LIMIT)) == ENDED


def test_it_is_looked_at_again_at_the_deadline_and_halfway() -> None:
    decision = judged(seen(limited(Phase.PENDING, {"suspend": True}, reason="Suspended")), at(10))
    assert (decision.effect, decision.requeue_at) == (None, 30)
    far = limited(Phase.PENDING, {"suspend": True, "deadlineSeconds": 3600}, reason="Suspended")
    assert judged(seen(far), at(10)).requeue_at == 1805


def test_the_deadline_is_a_time_of_the_api_servers_clock() -> None:
    """The operator's own is four seconds ahead of it."""
    ahead = Now(LIMIT, at(LIMIT).wall + 4, ahead=4.0)
    early = Now(LIMIT - 1, at(LIMIT - 1).wall + 4, ahead=4.0)
    assert moved(seen(limited()), early) is None
    assert moved(seen(limited()), ahead) == ENDED


@pytest.mark.parametrize(("own", "queues", "grace"), [(None, None, 30), (3, 7, 3), (None, 7, 7)])
def test_a_running_job_has_the_grace_of_a_cancel_and_a_margin(
    own: int | None, queues: int | None, grace: int
) -> None:
    spec = {} if own is None else {"cancelGraceSeconds": own}
    snapshot = seen(
        limited(Phase.RUNNING, spec),
        queue=QueueView(cancel_grace_seconds=queues),
        options=DecisionOptions(timeout_margin=10, lease_margin=600),
    )
    assert moved(snapshot, at(LIMIT + grace + 9)) is None
    assert judged(snapshot, at(LIMIT + grace + 9)).requeue_at == LIMIT + grace + 10
    effect = judged(snapshot, at(LIMIT + grace + 10)).effect
    assert isinstance(effect, ChangePhase)
    assert (effect.change.target, effect.change.reason) == ENDED
    assert f"the handler did not stop within {grace} s" in str(effect.change.fields["message"])


def test_a_job_of_a_dead_worker_is_tried_again_before_its_deadline_and_ended_after_it() -> None:
    holder = HolderStatus(pods_known=True, pod=pod(terminated=True))
    snapshot = seen(limited(Phase.RUNNING), holder=holder)
    assert moved(snapshot, at(LIMIT - 1)) == ("Queued", "WorkerCrashed")
    assert moved(snapshot, at(LIMIT)) == ENDED
    assert Reason.DEADLINE_EXCEEDED in RECOVERY_REASONS, "the metric begins at zero"


def test_a_request_to_cancel_is_the_reason_where_there_is_one() -> None:
    assert moved(seen(limited(spec={"cancel": True})), at(99)) == ("Cancelled", "CancelRequested")
    stubborn = seen(limited(Phase.RUNNING, {"cancel": True}), options=DecisionOptions())
    assert moved(stubborn, at(99)) == ("Cancelled", "CancelRequested")


def test_a_dead_letter_past_its_deadline_is_not_redriven_and_says_so_once() -> None:
    dead = limited(Phase.DEAD_LETTER, {"redrive": 1}, completionTime=stamp(5))
    assert moved(seen(dead), at(LIMIT - 1)) == ("Queued", "Redriven")
    effect = judged(seen(dead), at(LIMIT)).effect
    assert isinstance(effect, RefuseRedrive)
    assert effect.message == f"not redriven: the deadline of the job passed at {stamp(LIMIT)}"
    told = replace(seen(dead), refused_redrive=(1, RedriveRefusal.PAST_DEADLINE))
    assert judged(told, at(LIMIT)).effect is None


def test_a_redrive_refused_for_a_duplicate_is_refused_once_more_for_the_deadline() -> None:
    """The first refusal promised that it happens by itself once the id is free."""
    dead = limited(Phase.DEAD_LETTER, {"redrive": 1}, completionTime=stamp(5))
    told = replace(seen(dead), refused_redrive=(1, RedriveRefusal.DUPLICATE))
    effect = judged(told, at(LIMIT)).effect
    assert isinstance(effect, RefuseRedrive)
    assert effect.why is RedriveRefusal.PAST_DEADLINE


@pytest.mark.parametrize("phase", [Phase.DEAD_LETTER, Phase.SUCCEEDED, Phase.CANCELLED])
def test_a_job_that_has_finished_has_no_deadline(phase: Phase) -> None:
    assert judged(seen(limited(phase, completionTime=stamp(1))), at(9999)).effect is None


def test_a_creation_that_tells_no_time_sets_no_deadline() -> None:
    obj: Any = raw(spec={"deadlineSeconds": 1})
    for created in ("", "yesterday", "9999-12-31T23:59:59Z"):
        obj["metadata"]["creationTimestamp"] = created
        assert read_job(obj).deadline is None
