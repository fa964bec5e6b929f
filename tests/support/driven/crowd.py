"""Thousands of jobs, put into the store itself, which takes seconds: creating them takes a minute.

They are what the API server would have stored; it serves them like all others.
"""

import base64
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from asyncjob.names import JOBS
from asyncjob_dev.controlplane import ControlPlane

AT_ONCE = 100
"""Keys of one transaction: etcd takes 128."""


def fill(plane: ControlPlane, namespace: str, count: int, **spec: Any) -> list[str]:
    """Store so many queued jobs, a tenth of a second apart; return their names, newest first."""
    begin = datetime.now(UTC) - timedelta(seconds=count / 10)
    jobs = [
        _job(namespace, f"crowd-{number:05}", begin + timedelta(seconds=number / 10), spec)
        for number in range(count)
    ]
    store(plane, JOBS, jobs)
    return [job["metadata"]["name"] for job in reversed(jobs)]


def store(
    plane: ControlPlane, plural: str, objects: list[dict[str, Any]], at_once: int = AT_ONCE
) -> None:
    """Store objects that have all that the API server would have given them."""
    with httpx.Client(base_url=_address(plane), trust_env=False, timeout=30) as etcd:
        for start in range(0, len(objects), at_once):
            part = objects[start : start + at_once]
            puts = [{"requestPut": _put(plural, one)} for one in part]
            etcd.post("/v3/kv/txn", json={"success": puts}).raise_for_status()


def stored(namespace: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest with what the API server gives an object that is created now."""
    made = {
        "namespace": namespace,
        "uid": str(uuid.uuid4()),
        "generation": 1,
        "creationTimestamp": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    return {**body, "metadata": {**body["metadata"], **made}}


def clear(plane: ControlPlane, namespace: str) -> None:
    """Take all jobs of the namespace out of the store, so that nobody has to look at them."""
    prefix = f"/registry/asyncjob.dev/asyncjobs/{namespace}"
    ends = {"key": _text(f"{prefix}/"), "range_end": _text(f"{prefix}0")}  # 0 comes after /
    with httpx.Client(base_url=_address(plane), trust_env=False, timeout=30) as etcd:
        etcd.post("/v3/kv/deleterange", json=ends).raise_for_status()


def _job(namespace: str, name: str, created: datetime, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncJob",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": str(uuid.uuid4()),
            "generation": 1,
            "creationTimestamp": f"{created:%Y-%m-%dT%H:%M:%SZ}",
        },
        "spec": {"type": "crowd", **spec},
        "status": {"phase": "Queued"},
    }


def _put(plural: str, obj: dict[str, Any]) -> dict[str, str]:
    meta = obj["metadata"]
    key = f"/registry/asyncjob.dev/{plural}/{meta['namespace']}/{meta['name']}"
    return {"key": _text(key), "value": _text(json.dumps(obj))}


def _text(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _address(plane: ControlPlane) -> str:
    flag = "--listen-client-urls="
    return next(one.removeprefix(flag) for one in plane.etcd.argv if one.startswith(flag))
