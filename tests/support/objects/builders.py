"""Objects for tests: manifests, and jobs in any phase, made by the functions under test's rules."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from asyncjob.lifecycle.claim import Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phase_change import PhaseChange, status_fields
from asyncjob.lifecycle.policy import EffectivePolicy, read_policy_layer, resolve_policy
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.names import API_VERSION, ARRAY_KIND, CRON_JOB_KIND, JOB_KIND, QUEUE_KIND

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float = 0.0) -> str:
    """Return the text of a moment, counted from the beginning of all tests' time."""
    return format_timestamp(START + timedelta(seconds=seconds))


def job(name: str = "job", **spec: Any) -> dict[str, Any]:
    """Return the manifest of an AsyncJob."""
    return _manifest(JOB_KIND, name, {"type": "test", **spec})


def queue(name: str = "default", **spec: Any) -> dict[str, Any]:
    """Return the manifest of an AsyncQueue."""
    return _manifest(QUEUE_KIND, name, spec)


def cron_job(name: str = "nightly", **template: Any) -> dict[str, Any]:
    """Return the manifest of an AsyncCronJob; `template` is the spec of its jobs."""
    spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"type": "test", **template}}}
    return _manifest(CRON_JOB_KIND, name, spec)


def array(name: str = "thumbs", **spec: Any) -> dict[str, Any]:
    """Return the manifest of an AsyncArray, of ten items if nothing else is said."""
    return _manifest(ARRAY_KIND, name, {"type": "test", "items": {"count": 10}, **spec})


def _manifest(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def stored(name: str = "job", status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a job as the API server would, with what the schema fills in."""
    counters = dict.fromkeys(("attempt", "retries", "crashes", "releases", "redrives", "reruns"), 0)
    manifest = job(name, **{"queue": "default", "priority": 0, **spec})
    metadata = {
        "name": name,
        "namespace": "tests",
        "uid": "job-uid",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {
        **manifest,
        "metadata": metadata,
        "status": {"phase": "Queued", **counters, **(status or {})},
    }


def running(*, policy: EffectivePolicy | None = None, **status: Any) -> JobView:
    """Return a claimed job as decisions see it."""
    effective = policy or EffectivePolicy(jitter=0.0)
    held = {
        "phase": "Running",
        "attempt": 1,
        "claim": "first-claim",
        "startTime": at(),
        "firstStartTime": at(),
        "effective": effective.to_json(),
        "lease": {
            "holder": "worker-0",
            "holderUID": "worker-0-uid",
            "worker": "worker-0/1",
            "acquireTime": at(),
            "renewTime": at(),
            "renewals": 0,
            "durationSeconds": effective.lease_duration_seconds,
        },
    }
    return read_job(stored(status={**held, **status}))


def applied(obj: dict[str, Any], move: PhaseChange) -> dict[str, Any]:
    """Return the object after the move, as a store that replaces whole fields keeps it."""
    status = {**obj["status"], **status_fields(move, obj["status"])}
    return {**obj, "status": {key: value for key, value in status.items() if value is not None}}


def claim_of(obj: dict[str, Any], pod: str, pod_uid: str) -> dict[str, Any]:
    """Return the merge-patch with which a worker of this pod claims the job."""
    seen = read_job(obj)
    candidate = Candidate(seen.name, seen.resource_version, seen.type, attempt=seen.attempt)
    holder = LeaseHolder(pod, pod_uid, f"{pod}/1")
    policy = resolve_policy(read_policy_layer(obj["spec"]))
    body = claim_patch(candidate, holder, policy, claim_id=uuid.uuid4().hex, now=at())
    return {"metadata": body["metadata"], "status": dict(body["status"])}  # type: ignore[arg-type]  # a mapping by construction
