"""What others write into objects is read as far as it says something, and stops nobody."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncjob import columns
from asyncjob.deep_json import loads
from asyncjob.lifecycle.arrays.state import read_array
from asyncjob.lifecycle.claim import Candidate
from asyncjob.lifecycle.job_view import read_job
from asyncjob.lifecycle.waiting import explain_wait
from asyncjob.names import POD_UID_ANNOTATION, QUEUE_LABEL, WORKER_ANNOTATION
from asyncjob.worker_lease import read_worker_lease
from asyncjob_operator.cache.workers import WorkerPodCache, WorkerRegistry
from asyncjob_operator.core.admission.reservations import read_reservations
from asyncjob_operator.core.liveness import read_pod, status_written
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import read_queue
from asyncjob_operator.core.schedules.view import read_cron_job
from asyncjob_worker.claiming.job_rows import RowReader
from support.objects.fuzz import fuzzed, mutated, mutated_object

TIME = "2026-11-23T12:00:00.000Z"
META = {"namespace": "ns", "name": "worker-0", "uid": "u", "resourceVersion": "7"}
LEASE: dict[str, Any] = {
    "metadata": {
        **META,
        "name": "asyncjob-worker-worker-0",
        "labels": {QUEUE_LABEL: "default"},
        "annotations": {
            POD_UID_ANNOTATION: "p",
            WORKER_ANNOTATION: '{"queue":"default","types":["a","b"],"slots":4,"version":"1"}',
        },
    },
    "spec": {"holderIdentity": "w", "renewTime": TIME, "leaseDurationSeconds": 10},
}
ENDED = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": TIME}}
POD: dict[str, Any] = {
    "metadata": {
        **META,
        "managedFields": [{"subresource": "status", "time": TIME}],
        "annotations": {"kubectl.kubernetes.io/default-container": "worker"},
    },
    "status": {
        "phase": "Running",
        "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "Preempted"}],
        "containerStatuses": [{"name": "worker", "state": {"running": {}}, "lastState": ENDED}],
    },
}
JOB: dict[str, Any] = {
    "metadata": {**META, "creationTimestamp": TIME, "labels": {"a": "b"}},
    "spec": {
        "type": "mail",
        "queue": "default",
        "priority": 3,
        "payload": {"a": [1]},
        "notBefore": TIME,
        "dependsOn": [{"name": "a", "outcome": "Succeeded"}],
        "concurrencyKey": "k",
        "cancel": False,
        "retryPolicy": {"maxRetries": 2, "backoff": "Fixed", "jitter": 0.1, "retryOn": ["Network"]},
    },
    "status": {
        "phase": "Running",
        "reason": "",
        "attempt": 2,
        "claim": "c",
        "retries": 1,
        "admitted": True,
        "lease": {
            "holder": "worker-0",
            "holderUID": "p",
            "worker": "w",
            "renewals": 1,
            "durationSeconds": 60,
            "acquireTime": TIME,
            "renewTime": TIME,
        },
        "effective": {"maxRetries": 3, "backoff": "Exponential", "retryOn": []},
        "history": [{"phase": "Queued", "time": TIME}],
        "nextAttemptTime": TIME,
        "conditions": [{"type": "Complete", "status": "False"}],
    },
}
QUEUE: dict[str, Any] = {
    "metadata": META,
    "spec": {
        "paused": False,
        "maxConcurrency": 2,
        "maxConcurrencyPerKey": 1,
        "priorityAgeingSeconds": 60,
        "rateLimit": {"count": 3, "periodSeconds": 60},
        "defaults": {"retryPolicy": {"backoff": "Fixed"}},
    },
    "status": {
        "reservations": [{"name": "a", "uid": "u", "key": "k", "time": TIME, "queuedTime": TIME}],
        "workers": 1,
    },
}
CRON_JOB: dict[str, Any] = {
    "metadata": {**META, "creationTimestamp": TIME, "generation": 2},
    "spec": {
        "schedule": "*/5 * * * *",
        "timeZone": "Europe/Berlin",
        "concurrencyPolicy": "Forbid",
        "misfirePolicy": "FireOnce",
        "trigger": 1,
        "backfill": {"from": TIME, "to": TIME, "limit": 5},
        "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"type": "mail"}},
    },
    "status": {
        "lastScheduleTime": TIME,
        "nextScheduleTime": TIME,
        "active": [{"name": "a", "uid": "u"}],
        "pending": [{"name": "a", "time": TIME}],
        "missed": 1,
        "triggers": 1,
    },
}
ARRAY: dict[str, Any] = {
    "metadata": {**META, "creationTimestamp": TIME, "generation": 2},
    "spec": {
        "type": "thumb",
        "items": {"count": 7, "skip": "0-2,5"},
        "chunkSize": 3,
        "parallelism": 2,
        "itemRetries": 1,
        "maxFailed": 2,
        "results": {"uri": "file:///results/ns/a"},
        "notBefore": TIME,
        "dependsOn": [{"array": "b", "outcome": "Succeeded"}],
        "redrive": 1,
    },
    "status": {
        "phase": "Running",
        "reason": "",
        "total": 7,
        "next": 5,
        "succeeded": 3,
        "failed": 1,
        "failedItems": "3",
        "open": [{"name": "a-1", "items": "4", "generation": 1, "uid": "u"}],
        "requeued": "",
        "suspects": ["4"],
        "errors": [{"item": 3, "type": "ValueError", "message": "m"}],
        "generation": 1,
        "writer": "w",
        "admitted": True,
        "chunkSize": 10,
        "startTime": TIME,
        "conditions": [{"type": "Complete", "status": "False"}],
    },
}

Reader = Callable[[Any], object]
TOTAL: list[tuple[Reader, Any]] = [
    (read_worker_lease, LEASE),
    (read_pod, POD),
    (status_written, POD),
    (read_queue, QUEUE),
    (read_reservations, QUEUE),
]
"""What is read from objects that have no version of their own to be wrong in: never refused."""

REFUSING: list[tuple[Reader, Any]] = [
    (read_job, JOB),
    (explain_wait, JOB),
    (lambda obj: explain_wait(JOB, obj), QUEUE),
    (read_cron_job, CRON_JOB),
]
"""What is read from objects of ours: ValueError for a value of another version."""


def as_sent(obj: Any) -> Any:
    """Return the object as it comes out of JSON; any other thing is no object."""
    read = loads(json.dumps(obj).encode())
    return read if isinstance(read, dict) else {}


@pytest.mark.parametrize(("read", "example"), TOTAL)
@fuzzed
@given(data=st.data())
def test_an_object_of_others_is_never_refused(
    read: Reader, example: Any, data: st.DataObject
) -> None:
    read(as_sent(data.draw(mutated_object([example]))))


@pytest.mark.parametrize(("read", "example"), REFUSING)
@fuzzed
@given(data=st.data())
def test_an_object_is_read_or_refused_as_of_another_version(
    read: Reader, example: Any, data: st.DataObject
) -> None:
    try:
        read(as_sent(data.draw(mutated_object([example]))))
    except ValueError as error:
        assert "is not a valid" in str(error)  # noqa: PT017


@fuzzed
@given(mutated_object([ARRAY]))
def test_an_array_is_read_or_refused(written: Any) -> None:
    with suppress(ValueError):
        read_array(as_sent(written))


@fuzzed
@given(st.lists(mutated_object([LEASE, POD]), max_size=6))
def test_what_others_write_about_workers_leaves_the_counts_of_a_queue_right(written: Any) -> None:
    now = Now(monotonic=100.0, wall=1.8e9)
    pods = WorkerPodCache(lambda: now)
    registry = WorkerRegistry(lambda: 100.0, lambda _queue: None)
    registry.mark_leases_watched()
    for number, obj in enumerate(map(as_sent, written)):
        versioned = {
            **obj,
            "metadata": {**as_sent(obj.get("metadata")), "resourceVersion": f"{number}"},
        }
        pods.on_pod_update(versioned)
        pods.on_lease_update(versioned)
        registry.on_lease_update(versioned)
    for namespace, pod in pods.leases_in(None):
        registry.on_lease_delete(namespace, f"asyncjob-worker-{pod}")
    for workers, slots in (registry.capacity_by_queue() or {}).values():
        assert workers >= 0
        assert slots >= 0


NAMES = [column.name for column in columns.JOB_COLUMNS]
TABLE: dict[str, Any] = {
    "columnDefinitions": [{"name": name} for name in [columns.NAME, *NAMES]],
    "rows": [
        {
            "cells": [
                "job",
                "Queued",
                "mail",
                "default",
                1,
                None,
                TIME,
                "",
                None,
                0,
                3,
                True,
                "[]",
                False,
                False,
                60,
                30,
                '{"maxRetries":1,"backoff":"Fixed"}',
                "",
            ]
        }
    ],
}
RETRY_CELLS = [b'{"maxRetries":1,"backoff":"Fixed"}', b'{"backoff":"Linear"}', b"[]"]


def test_the_table_of_these_tests_is_a_good_one() -> None:
    found = RowReader().read(TABLE, "7")
    assert found is not None
    assert (found.name, found.type, found.priority, found.admitted) == ("job", "mail", 3, True)
    assert found.policy.max_retries == 1


@fuzzed
@given(st.lists(mutated_object([TABLE]), min_size=1, max_size=3))
def test_a_table_that_cannot_be_read_is_passed_over(tables: Any) -> None:
    reader = RowReader()
    for table in map(as_sent, tables):
        found = reader.read(table, "7")
        assert found is None or isinstance(found, Candidate)
    found = reader.read(TABLE, "8")
    assert found is not None
    assert replace(found, resource_version="7") == RowReader().read(TABLE, "7")


@fuzzed
@given(mutated(RETRY_CELLS))
def test_a_job_whose_retry_policy_cannot_be_read_is_passed_over(cell: bytes) -> None:
    row = [*TABLE["rows"][0]["cells"]]
    row[NAMES.index(columns.RETRY_POLICY) + 1] = cell.decode(errors="replace")
    found = RowReader().read({**TABLE, "rows": [{"cells": row}]}, "7")
    assert found is None or found.name == "job"
