"""What is kept of jobs that may be taken from a worker, and in which version."""

from typing import Any

from asyncjob.deep_json import TruncatedObject
from asyncjob.lifecycle.job_view import read_job
from asyncjob_operator.cache.statuses import StatusCache
from support.objects.snapshots import raw, running

HISTORY: Any = [{"time": "2027-01-15T08:00:00Z", "phase": "Queued", "attempt": 0}]


def obj(name: str = "job", version: str = "1", phase: str = "Running", **more: Any) -> Any:
    made: Any = raw(name, phase=phase, history=HISTORY, **{**running(), **more})
    made["metadata"]["resourceVersion"] = version
    return made


def keep(cache: StatusCache, of: Any) -> None:
    cache.keep(read_job(of), of)


def test_the_history_is_at_hand_in_the_very_version_that_is_known_and_nothing_else() -> None:
    cache, job = StatusCache(), obj(spec={"payload": {"large": "x"}})
    keep(cache, job)
    assert cache.get(read_job(job)) == {"spec": {}, "status": {"history": HISTORY}}
    assert cache.get(read_job(obj(version="2"))) is None


def test_a_job_that_neither_runs_nor_waits_to_be_retried_is_not_kept() -> None:
    cache = StatusCache()
    keep(cache, obj())
    keep(cache, obj(version="2", phase="Queued", lease=None))
    assert len(cache) == 0


def test_of_too_many_jobs_the_first_are_forgotten() -> None:
    cache = StatusCache(limit=2)
    for name in ("a", "b", "c"):
        keep(cache, obj(name))
    assert [cache.get(read_job(obj(name))) is None for name in ("a", "b", "c")] == [
        True,
        False,
        False,
    ]


def test_a_job_that_could_not_be_read_in_full_is_not_kept() -> None:
    cache, job = StatusCache(), TruncatedObject(obj())
    cache.keep(read_job(job), job)
    assert len(cache) == 0
