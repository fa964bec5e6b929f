"""Which workers are known to hold a job that outlasts the beginning of a fault."""

from datetime import UTC, datetime, timedelta
from typing import Any

from asyncjob_chaos.faults.busy import FRESH_SECONDS, STEPS, holders

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def _running(holder: str, steps: int, claimed_before: float) -> dict[str, Any]:
    claimed = NOW - timedelta(seconds=claimed_before)
    return {
        "spec": {"payload": {"seconds": 0.4, "steps": steps}},
        "status": {"lease": {"holder": holder, "acquireTime": claimed.isoformat()}},
    }


def test_a_worker_counts_that_has_just_claimed_one_of_the_jobs_submitted_for_it() -> None:
    jobs = [_running("worker-1", STEPS, 0.5), _running("worker-2", STEPS, FRESH_SECONDS - 0.1)]
    assert holders(jobs, NOW) == {"worker-1", "worker-2"}


def test_jobs_of_the_load_and_those_that_soon_end_do_not_count() -> None:
    plain: dict[str, Any] = _running("worker-3", STEPS, 0.5)
    plain["spec"] = {"payload": {"seconds": 0.1}}
    ending = _running("worker-1", STEPS, FRESH_SECONDS + 0.1)
    assert holders([plain, ending, _running("worker-2", 6, 0.5)], NOW) == frozenset()
