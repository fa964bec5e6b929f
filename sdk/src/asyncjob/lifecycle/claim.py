"""The claim: the conditional write by which a worker takes a queued job."""

from collections.abc import Mapping
from dataclasses import dataclass

from asyncjob.json_types import Json, JsonObject
from asyncjob.lifecycle.phase_change import StatusFields
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.policy import EffectivePolicy, PolicyLayer

EMPTY_POLICY_LAYER = PolicyLayer()


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """Who claims: pod name, pod UID, and the identity of this process start."""

    pod: str
    pod_uid: str
    worker: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A queued job as far as choosing and claiming it need to know."""

    name: str
    resource_version: str
    type: str
    priority: int = 0
    attempt: int = 0
    crashes: int = 0
    admitted: bool = False
    gated: bool = False
    policy: PolicyLayer = EMPTY_POLICY_LAYER


def claim_patch(
    candidate: Candidate, holder: LeaseHolder, policy: EffectivePolicy, *, claim_id: str, now: str
) -> JsonObject:
    """Return the merge-patch for `/status`: exact on the version seen, 409 for all but one."""
    status: StatusFields = {
        "phase": Phase.RUNNING.value,
        "reason": None,
        "message": None,
        "attempt": candidate.attempt + 1,
        "claim": claim_id,
        "effective": policy.to_json(),
        "lease": _new_lease(holder, policy.lease_duration_seconds, now),
        "startTime": now,
        "lastTransitionTime": now,
        "lastUpdateTime": now,
    }
    if candidate.attempt == 0:
        status["firstStartTime"] = now
    return {"metadata": {"resourceVersion": candidate.resource_version}, "status": status}


def _new_lease(holder: LeaseHolder, seconds: int, now: str) -> Mapping[str, Json]:
    return {
        "holder": holder.pod,
        "holderUID": holder.pod_uid,
        "worker": holder.worker,
        "acquireTime": now,
        "renewTime": now,
        "renewals": 0,
        "durationSeconds": seconds,
    }
