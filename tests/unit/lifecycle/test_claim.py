"""What a claim writes, whole: the API server's rules judge each field of it."""

from typing import Any

from asyncjob.lifecycle.claim import EMPTY_POLICY_LAYER, Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.policy import EffectivePolicy

HOLDER = LeaseHolder("worker-0", "pod-uid", "process")
POLICY = EffectivePolicy(lease_duration_seconds=45)
NOW = "2026-11-23T12:00:00.000Z"


def test_a_first_claim_begins_the_job() -> None:
    patch = claim_patch(Candidate("j", "41", "mail"), HOLDER, POLICY, claim_id="c", now=NOW)
    expected: dict[str, Any] = {
        "metadata": {"resourceVersion": "41"},
        "status": {
            "phase": "Running",
            "reason": None,
            "message": None,
            "attempt": 1,
            "claim": "c",
            "effective": POLICY.to_json(),
            "lease": {
                "holder": "worker-0",
                "holderUID": "pod-uid",
                "worker": "process",
                "acquireTime": NOW,
                "renewTime": NOW,
                "renewals": 0,
                "durationSeconds": 45,
            },
            "startTime": NOW,
            "firstStartTime": NOW,
            "lastTransitionTime": NOW,
            "lastUpdateTime": NOW,
        },
    }
    assert patch == expected


def test_a_later_claim_leaves_the_first_start_as_it_was() -> None:
    again = Candidate("j", "41", "mail", attempt=2)
    first = claim_patch(Candidate("j", "41", "mail"), HOLDER, POLICY, claim_id="c", now=NOW)
    status = dict(first["status"])  # type: ignore[arg-type]  # an object, as above
    del status["firstStartTime"]
    patch = claim_patch(again, HOLDER, POLICY, claim_id="c", now=NOW)
    assert patch == {"metadata": first["metadata"], "status": status | {"attempt": 3}}


def test_a_candidate_of_which_nothing_more_is_known_is_plain() -> None:
    found = Candidate("j", "41", "mail")
    assert (found.priority, found.attempt, found.crashes) == (0, 0, 0)
    assert (found.admitted, found.gated, found.policy) == (False, False, EMPTY_POLICY_LAYER)
