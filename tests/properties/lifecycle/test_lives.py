"""Whole lives of jobs: whatever happens in whatever order, the rules hold at each step."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from asyncjob.lifecycle import phase_change
from asyncjob.lifecycle.claim import Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phase_change import (
    MAX_HISTORY_ENTRIES,
    Failure,
    PhaseChange,
    cancel_running_job,
    crash,
    fail,
    release,
    status_fields,
    status_json_patch,
    succeed,
)
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase, Reason
from asyncjob.lifecycle.policy import Category, EffectivePolicy
from asyncjob.lifecycle.transitions import find_transition
from support.objects.builders import at, stored

Status = dict[str, Any]
Step = Callable[[JobView, float], PhaseChange | None]

ME = LeaseHolder("worker-0", "worker-0-uid", "worker-0/1")
NO_LUCK = Failure(type="ValueError", category="Internal", message="no luck")
HOPELESS = Failure(type="ValueError", category="Internal", message="hopeless", permanent=True)

WHILE_RUNNING: dict[str, Step] = {
    "succeed": lambda job, _: succeed(job, now=at(), result=1),
    "fail": lambda job, jitter_sample: fail(job, NO_LUCK, now=at(), jitter_sample=jitter_sample),
    "give up": lambda job, jitter_sample: fail(
        job, HOPELESS, now=at(), jitter_sample=jitter_sample
    ),
    "crash": lambda job, jitter_sample: crash(
        job, Reason.LEASE_EXPIRED, "", now=at(), jitter_sample=jitter_sample
    ),
    "release": lambda job, jitter_sample: release(
        job, Reason.RELEASED, "", now=at(), jitter_sample=jitter_sample
    ),
    "cancel": lambda job, _: cancel_running_job(job, "", now=at()),
}
OTHERWISE: dict[Phase, Step] = {
    Phase.SCHEDULED: lambda job, _: phase_change.promote(job, now=at()),
    Phase.PENDING: lambda job, _: phase_change.promote(job, now=at()),
    Phase.RETRYING: lambda job, _: phase_change.promote(job, now=at()),
    Phase.DEAD_LETTER: lambda job, _: phase_change.redrive(job, now=at()),
    Phase.SUCCEEDED: lambda _, __: None,
    Phase.CANCELLED: lambda _, __: None,
}
WHILE_QUEUED: dict[str, Step] = {
    "schedule": lambda job, _: phase_change.schedule(job, now=at()),
    "hold": lambda job, _: phase_change.hold(job, Reason.QUEUE_PAUSED, "", now=at()),
    "time out": lambda job, _: phase_change.dead_letter(
        job, Reason.QUEUE_TIMEOUT, Category.TIMEOUT, "", now=at()
    ),
}

choices = st.tuples(
    st.sampled_from(sorted(WHILE_RUNNING)),
    st.sampled_from([*sorted(WHILE_QUEUED), *["claim"] * 6]),
    st.floats(0, 1, exclude_max=True),
)


def claimed(status: Status, policy: EffectivePolicy, number: int) -> Status:
    seen = Candidate("job", "1", "test", attempt=status["attempt"])
    body: Any = claim_patch(seen, ME, policy, claim_id=f"claim-{number}", now=at())
    return {key: value for key, value in {**status, **body["status"]}.items() if value is not None}


def patched(status: Status, move: PhaseChange) -> Status:
    """Apply the JSON Patch as the API server would."""
    after = dict(status)
    for operation in status_json_patch(status_fields(move, status), status):
        name = str(operation["path"]).rpartition("/")[2]
        if operation["op"] == "remove":
            del after[name]
        else:
            after[name] = operation["value"]
    return after


@given(
    st.lists(choices, max_size=60),
    st.integers(0, 3),
    st.integers(0, 2),
)
def test_every_step_of_every_life_obeys_the_rules(
    steps: list[tuple[str, str, float]], max_retries: int, max_crashes: int
) -> None:
    policy = EffectivePolicy(max_retries=max_retries, max_crashes=max_crashes)
    status: Status = stored()["status"]
    for number, (running, queued, jitter_sample) in enumerate(steps):
        job = read_job(stored(status=status, notBefore=at(), redrive=status.get("redrives", 0) + 1))
        if job.phase is Phase.QUEUED and queued == "claim":
            after = claimed(status, policy, number)
        else:
            step = (
                WHILE_RUNNING[running] if job.phase is Phase.RUNNING else OTHERWISE.get(job.phase)
            )
            move = (step or WHILE_QUEUED[queued])(job, jitter_sample)
            if move is None:
                break
            after = patched(status, move)
        obeys(status, after)
        status = after


def obeys(before: Status, after: Status) -> None:
    source, target = Phase(before["phase"]), Phase(after["phase"])
    transition = find_transition(source, target)
    assert transition is not None
    assert (
        (Reason(after["reason"]) in transition.reasons)
        if "reason" in after
        else not transition.reasons
    )
    has_what_its_phase_asks_for(target, after)
    counts_what_the_transition_names(transition.incremented, before, after)
    keeps_history(target, before, after)


def has_what_its_phase_asks_for(phase: Phase, status: Status) -> None:
    assert ("lease" in status) == (phase is Phase.RUNNING)
    assert ("completionTime" in status) == (phase in FINISHED_PHASES)
    assert len(status.get("conditions", [])) == (phase in FINISHED_PHASES)
    assert ("nextAttemptTime" in status) == (phase is Phase.RETRYING)
    assert ("retryDelaySeconds" in status) == (phase is Phase.RETRYING)


def counts_what_the_transition_names(grows: frozenset[str], before: Status, after: Status) -> None:
    if after.get("reason") == "Redriven":
        assert [after[name] for name in ("retries", "crashes", "releases")] == [0, 0, 0]
        return
    grown = {
        name: after[name] - before[name] for name in ("attempt", "retries", "crashes", "releases")
    }
    assert set(grown.values()) <= {0, 1}
    assert {name for name, by in grown.items() if by} <= set(grows)
    if after["phase"] == "Retrying":
        assert any(grown.values())
    if grown["retries"]:
        assert after.get("retries", 0) <= after["effective"]["maxRetries"]
        assert not grown["crashes"]


def keeps_history(target: Phase, before: Status, after: Status) -> None:
    old, new = before.get("history", []), after.get("history", [])
    if target is Phase.RUNNING:
        assert new == old
        return
    assert len(new) == min(len(old) + 1, MAX_HISTORY_ENTRIES)
    assert new[-1]["phase"] == target
    assert new[:-1] == old[-(MAX_HISTORY_ENTRIES - 1) :]
    cut = after.get("historyOmitted", 0) - before.get("historyOmitted", 0)
    assert cut == (len(old) == MAX_HISTORY_ENTRIES)
