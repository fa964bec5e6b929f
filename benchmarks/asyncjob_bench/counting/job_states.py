"""A job as the API server shows it from creation to completion, made by the code that writes it."""

from typing import Any, Final

import orjson

from asyncjob import columns
from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.names import API_VERSION
from asyncjob_bench.harness import templates
from asyncjob_bench.harness.handlers import NOTHING

NAMESPACE: Final = "count"
HOLDER: Final = LeaseHolder("worker-0", "5b0c1d1e-0000-4000-8000-000000000000", "worker-0/0123abcd")
NOW: Final = "2026-01-01T00:00:00.000Z"
NAMES: Final = (columns.NAME, *(column.name for column in columns.JOB_COLUMNS))

Object = dict[str, Any]


def name_of(number: int) -> str:
    """Return the name of a job."""
    return f"job-{number}"


def queued(number: int) -> Object:
    """Return the job as it is created."""
    submitted = templates.job(NAMESPACE, templates.submission(), name_of(number))
    metadata = {
        **submitted["metadata"],
        "uid": f"00000000-0000-4000-8000-{number:012d}",
        "creationTimestamp": NOW,
        "generation": 1,
        "resourceVersion": str(10 * number + 1),
        "managedFields": [_owned(templates.SUBMITTER, "f:spec", **{"f:type": {}, "f:payload": {}})],
    }
    spec = {"queue": "default", "priority": 0, **submitted["spec"]}
    return {**submitted, "metadata": metadata, "spec": spec, "status": {"phase": "Queued"}}


def claimed(number: int) -> Object:
    """Return it with its first claim."""
    body = _filled(templates.claim(NAMESPACE).body, number)
    status = {key: value for key, value in body["status"].items() if value is not None}
    return _next(queued(number), status)


def completed(number: int) -> Object:
    """Return it with its outcome."""
    before = claimed(number)
    status = dict(before["status"])
    for step in _filled(templates.complete(NAMESPACE, queued(number)).body, number):
        field = step["path"].removeprefix("/status/")
        if step["op"] == "remove":
            del status[field]
        elif step["op"] == "add":
            status[field] = step["value"]
    return _next(before, status)


def row_event(number: int) -> bytes:
    """Return the line of a worker's watch that tells of the queued job."""
    cells = {
        columns.NAME: name_of(number),
        columns.PHASE: "Queued",
        columns.TYPE: NOTHING,
        columns.QUEUE: "default",
        columns.PRIORITY: 0,
    }
    table = {
        "kind": "Table",
        "metadata": {"resourceVersion": str(10 * number + 1)},
        "columnDefinitions": [{"name": name} for name in NAMES],
        "rows": [{"cells": [cells.get(name) for name in NAMES], "object": None}],
    }
    return orjson.dumps({"type": "ADDED", "object": table})


def _filled(body: str, number: int) -> Any:
    marks = {
        templates.NAME: name_of(number),
        templates.VERSION: str(10 * number + 1),
        templates.CLAIM: f"{number:016x}",
        templates.NOW: NOW,
        templates.POD_UID: HOLDER.pod_uid,
        templates.POD: HOLDER.pod,
        templates.WORKER: HOLDER.worker,
    }
    for mark, value in marks.items():
        body = body.replace(mark, value)
    return orjson.loads(body)


def _next(obj: Object, status: JsonObject) -> Object:
    """Return the job after a worker's write of its status."""
    version = str(int(obj["metadata"]["resourceVersion"]) + 1)
    owners = [
        obj["metadata"]["managedFields"][0],
        {**_owned(templates.WORKER_MANAGER, "f:status"), "subresource": "status"},
    ]
    metadata = {**obj["metadata"], "resourceVersion": version, "managedFields": owners}
    return {**obj, "metadata": metadata, "status": status}


def _owned(manager: str, part: str, **fields: object) -> Object:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": API_VERSION,
        "time": NOW,
        "fieldsType": "FieldsV1",
        "fieldsV1": {part: fields},
    }
