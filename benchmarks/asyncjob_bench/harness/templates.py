"""The bodies of a plain job's three writes, made by the code that makes those of the real worker.

What differs from job to job is a placeholder that the bare generator fills in, so a change to what
the worker writes changes the raw ceiling along with it.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from asyncjob.client.kubernetes.client import FIELD_MANAGER
from asyncjob.json_types import JsonObject
from asyncjob.kube.session import METADATA_TYPE
from asyncjob.lifecycle.claim import Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.phase_change import succeed
from asyncjob.lifecycle.policy import PolicyLayer, resolve_policy
from asyncjob.names import (
    API_VERSION,
    ARRAY_KIND,
    JOBS,
    SHARD_LABEL,
    collection_path,
    job_status_path,
)
from asyncjob.rest.submission import Submission
from asyncjob.shards import shard_of
from asyncjob.submission import build_manifest
from asyncjob_bench.harness.handlers import NOTHING, RESULT, app
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.patches import outcome_patch

NAME: Final = "@NAME@"
VERSION: Final = "@VERSION@"
CLAIM: Final = "@CLAIM@"
NOW: Final = "@NOW@"
SHARD: Final = "@SHARD@"
POD: Final = "@POD@"
POD_UID: Final = "@POD-UID@"
WORKER: Final = "@WORKER@"

SUBMITTER: Final = "asyncjob-submitter"
WORKER_MANAGER: Final = "asyncjob-worker"
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"

_PLACEHOLDER_TIME: Final = "2000-01-01T00:00:00.000Z"
"""A time that the pure functions can reckon with; the mark takes its place afterwards."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request of the generator; an empty token stands for the connection's worker."""

    name: str
    method: str
    path: str
    content_type: str
    user_agent: str
    body: str
    token: str = ""
    accept: str = JSON

    def to_json(self) -> dict[str, str]:
        """Return the generator's form."""
        return {
            "name": self.name,
            "method": self.method,
            "path": f"{self.path}?fieldManager={self.user_agent}",
            "contentType": self.content_type,
            "userAgent": self.user_agent,
            "accept": self.accept,
            "token": self.token,
            "body": self.body,
        }


def payload(size: int) -> dict[str, Any]:
    """Return a payload of about so many bytes as JSON."""
    frame = {"number": 1, "text": ""}
    return {"number": 1, "text": "x" * max(0, size - len(json.dumps(frame)))}


def submission(size: int = 100, *, kind: str = NOTHING, **options: Any) -> dict[str, Any]:
    """Return what a user asks for: the fields of a `Submission`, but for its name."""
    return {"type": kind, "payload": payload(size), **options}


def job(namespace: str, asked: dict[str, Any], name: str = NAME) -> dict[str, Any]:
    """Return the job that the client makes of it."""
    made = build_manifest(Submission.model_validate(asked), namespace, new_id="none").manifest
    metadata: Any = made["metadata"]
    labels = {**metadata["labels"], SHARD_LABEL: SHARD if name == NAME else str(shard_of(name))}
    return {**made, "metadata": {**metadata, "name": name, "labels": labels}}


def array(name: str, kind: str, count: int, **spec: Any) -> dict[str, Any]:
    """Return an array of so many numbers."""
    return {
        "apiVersion": API_VERSION,
        "kind": ARRAY_KIND,
        "metadata": {"name": name},
        "spec": {"type": kind, "items": {"count": count}, **spec},
    }


def create(namespace: str, token: str, submitted: dict[str, Any]) -> Step:
    """Return the submitter's write."""
    path = collection_path(namespace, JOBS)
    return Step("create", "POST", path, JSON, FIELD_MANAGER, _text(submitted), token)


def claim(namespace: str) -> Step:
    """Return the worker's first write."""
    path = job_status_path(namespace, NAME)
    return Step("claim", "PATCH", path, MERGE_PATCH, WORKER_MANAGER, _text(_claim_body()))


def complete(namespace: str, submitted: dict[str, Any]) -> Step:
    """Return the worker's last write."""
    held = HeldJob.from_response(_claimed(namespace, submitted), 0.0)
    moved = succeed(held.job, now=_PLACEHOLDER_TIME, result=dict(RESULT))
    body = outcome_patch(held, moved, held.status, None)
    path = job_status_path(namespace, NAME)
    return Step(
        "complete", "PATCH", path, JSON_PATCH, WORKER_MANAGER, _text(body), accept=METADATA_TYPE
    )


def _claim_body() -> JsonObject:
    policy = resolve_policy(PolicyLayer(), PolicyLayer(), app.handlers[NOTHING].policy)
    candidate = Candidate(NAME, VERSION, NOTHING)
    return claim_patch(
        candidate, LeaseHolder(POD, POD_UID, WORKER), policy, claim_id=CLAIM, now=_PLACEHOLDER_TIME
    )


def _claimed(namespace: str, submitted: dict[str, Any]) -> dict[str, Any]:
    """Return what the claim is answered with, as far as the outcome depends on it."""
    status: Any = _claim_body()["status"]
    return {
        **submitted,
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "uid": "uid",
            "resourceVersion": VERSION,
            "creationTimestamp": _PLACEHOLDER_TIME,
        },
        "status": {key: value for key, value in status.items() if value is not None},
    }


def _text(body: object) -> str:
    return json.dumps(body, separators=(",", ":")).replace(_PLACEHOLDER_TIME, NOW)
