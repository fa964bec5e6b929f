"""Whatever is computed for a job's status, the schema takes: else it is refused for ever."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from asyncjob.lifecycle import phase_change
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phase_change import (
    Failure,
    PhaseChange,
    cancel_running_job,
    crash,
    fail,
    release,
    status_fields,
    succeed,
)
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import MAX_DURATION_SECONDS, EffectivePolicy
from asyncjob.models.job_status import AsyncJobStatus

NOW = "2026-11-21T15:00:00.000Z"
NASTY_TIMES = (
    "0000-01-01T00:00:00Z",
    "1000-01-01T00:00:00+23:59",
    "1970-01-01T00:00:00Z",
    "2025-11-21T15:00:00Z",
    "2025-11-21T14:59:59.999Z",
    "2026-11-21T14:59:59.123456789Z",
    "9999-12-31T23:59:59-23:59",
    "yesterday",
)
NO_LUCK = Failure(type="E" * 999, category="Internal", message="m" * 9999)
Ends = Callable[[JobView, float], PhaseChange]
WHILE_RUNNING: dict[str, Ends] = {
    "succeed": lambda job, _: succeed(job, now=NOW),
    "fail": lambda job, jitter_sample: fail(job, NO_LUCK, now=NOW, jitter_sample=jitter_sample),
    "crash": lambda job, jitter_sample: crash(
        job, Reason.LEASE_EXPIRED, "m" * 9999, now=NOW, jitter_sample=jitter_sample
    ),
    "release": lambda job, jitter_sample: release(
        job, Reason.RELEASED, "", now=NOW, jitter_sample=jitter_sample
    ),
    "cancel": lambda job, _: cancel_running_job(job, "m" * 9999, now=NOW),
}
WHILE_DEAD: dict[str, Ends] = {
    "dismiss": lambda job, _: phase_change.cancel_waiting_job(job, Reason.DISMISSED, "", now=NOW),
    "redrive": lambda job, _: phase_change.redrive(job, now=NOW),
}
delays = st.one_of(
    st.sampled_from([0.0, MAX_DURATION_SECONDS - 0.001, float(MAX_DURATION_SECONDS)]),
    st.floats(0, MAX_DURATION_SECONDS),
)
policies = st.builds(
    EffectivePolicy,
    initial_delay_seconds=delays,
    max_delay_seconds=delays,
    jitter=st.sampled_from([0.0, 0.2, 1.0]),
    max_retries=st.sampled_from([0, 3, 100_000]),
    max_crashes=st.sampled_from([0, 3, 1000]),
)
draws = st.one_of(st.sampled_from([0.0, 0.5, 0.999_999]), st.floats(0, 1, exclude_max=True))
counts = st.sampled_from([0, 3, 4, 100, 101, 1000, 99_999])


@given(
    st.sampled_from(sorted({**WHILE_RUNNING, **WHILE_DEAD})),
    st.sampled_from(NASTY_TIMES),
    policies,
    draws,
    counts,
)
def test_no_change_of_phase_carries_a_value_beyond_the_schemas_bounds(
    ending: str, first_start: str, policy: EffectivePolicy, jitter_sample: float, count: int
) -> None:
    status: dict[str, Any] = {
        "phase": (Phase.RUNNING if ending in WHILE_RUNNING else Phase.DEAD_LETTER).value,
        "attempt": 1,
        "retries": count,
        "crashes": count,
        "releases": count,
        "effective": policy.to_json(),
        "firstStartTime": first_start,
    }
    obj: dict[str, Any] = {
        "metadata": {"name": "j", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
        "spec": {"type": "test", "redrive": 1},
        "status": status,
    }
    decided = {**WHILE_RUNNING, **WHILE_DEAD}[ending](read_job(obj), jitter_sample)
    AsyncJobStatus.model_validate(
        {name: value for name, value in status_fields(decided, {}).items() if value is not None}
    )
