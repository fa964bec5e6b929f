"""Cron jobs and queues as the gateway keeps them: what lists show of them, and nothing large."""

import json
from typing import Any

from structlog.testing import capture_logs

from asyncjob.kube.watch import WatchEvent
from asyncjob.rest.resources import cron_job_of, queue_of
from asyncjob_gateway.cache.entries import TrimmedCronJob, trim_queue
from asyncjob_gateway.cache.namespace import NamespaceCache
from support.objects.builders import cron_job, queue

LARGE = "x" * 100_000


def schedule(version: int = 1, *, name: str = "nightly", uid: str = "u", **spec: Any) -> Any:
    """Return a cron job with a large template and annotation, and all that a list shows."""
    obj = cron_job(name, payload=LARGE, queue="mail")
    obj["metadata"] |= {
        "namespace": "ns",
        "uid": uid,
        "resourceVersion": str(version),
        "annotations": {"note": LARGE},
        "managedFields": [{"fieldsV1": {"f:a": LARGE}}],
    }
    obj["spec"] |= {"timeZone": "Europe/Berlin", **spec}
    obj["status"] = {
        "activeCount": 2,
        "lastScheduleTime": "2026-01-01T00:00:00Z",
        "lastSuccessfulTime": "2026-01-01T00:01:00Z",
        "nextScheduleTime": "2026-01-02T00:00:00Z",
        "reason": "Created",
        "message": "as ever",
    }
    return obj


def cache_of(*schedules: Any) -> NamespaceCache:
    made = NamespaceCache("ns")
    made._cron_jobs.replace([TrimmedCronJob(one) for one in schedules])
    return made


def test_a_list_of_schedules_shows_what_a_look_at_each_does_by_name() -> None:
    schedules = [schedule(name=name) for name in "ba"]
    assert cache_of(*schedules).cron_jobs() == [cron_job_of(one) for one in reversed(schedules)]


def test_nothing_large_of_a_schedule_or_queue_is_kept() -> None:
    kept = TrimmedCronJob(schedule())
    assert LARGE not in json.dumps(kept)
    assert kept.info
    assert LARGE not in kept.info.model_dump_json()
    obj = queue("mail", paused=True)
    obj["metadata"]["annotations"] = {"note": LARGE}
    assert LARGE not in json.dumps(trim_queue(obj))
    assert queue_of(trim_queue(obj)) == queue_of(obj)


def test_a_schedule_that_cannot_be_read_is_left_out_of_lists() -> None:
    with capture_logs() as logs:
        cache = cache_of(schedule(name="odd", schedule=7), schedule())
    assert [one.name for one in cache.cron_jobs()] == ["nightly"]
    assert [line["event"] for line in logs] == ["cron job not readable"]


def test_what_was_written_is_listed_before_the_watch_shows_it_and_nothing_older_after() -> None:
    cache = cache_of(schedule(1))
    cache.put_written(schedule(3, suspend=True))
    assert cache.cron_jobs()[0].suspended
    cache._cron_jobs.apply(WatchEvent("MODIFIED", TrimmedCronJob(schedule(2))))
    assert cache.cron_jobs()[0].suspended
    cache._cron_jobs.apply(WatchEvent("MODIFIED", TrimmedCronJob(schedule(4))))
    assert not cache.cron_jobs()[0].suspended


def test_a_late_answer_brings_no_deleted_schedule_back() -> None:
    cache = cache_of(schedule(1))
    cache._cron_jobs.apply(WatchEvent("DELETED", TrimmedCronJob(schedule(3))))
    cache.put_written(schedule(2))
    assert cache.cron_jobs() == []
    cache._cron_jobs.apply(WatchEvent("ADDED", TrimmedCronJob(schedule(5, uid="another"))))
    cache.put_written(schedule(6))
    assert cache._cron_jobs.by_name["nightly"]["metadata"]["uid"] == "another"  # type: ignore[index,call-overload]  # JSON
