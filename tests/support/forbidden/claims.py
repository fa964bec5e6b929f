"""Claims, in the worker's own name, that no worker may make."""

from typing import Final

from asyncjob.lifecycle.policy import EffectivePolicy
from support.cluster.api import Answer
from support.driven.lives import released
from support.forbidden.case import Case, ForbiddenSetup, claim
from support.objects.builders import at, claim_of

_RETRY_RULES: Final = {
    "maxRetries": 7,
    "backoff": "Fixed",
    "initialDelaySeconds": 5,
    "maxDelaySeconds": 50,
    "jitter": 0.5,
    "retryOn": ["Network"],
    "noRetryOn": ["Timeout"],
    "maxCrashes": 9,
}


def _with_the_last_claims_id(setup: ForbiddenSetup) -> Answer:
    life = setup.life()
    first = life.claim()["status"]["claim"]
    life.move(released, setup.worker.client).object()
    body = claim_of(life.read(), setup.worker.pod, setup.worker.pod_uid)
    body["status"]["claim"] = first
    return setup.acting(setup.worker.client).merge(life.status_path, body)


def _against(rule: str) -> Case:
    built_in = EffectivePolicy().to_json()[rule]
    return claim(
        "effective.obeys-retry-policy",
        f"a claim whose policy in force is not the job's own in {rule}",
        spec={"retryPolicy": {rule: _RETRY_RULES[rule]}},
        effective={rule: built_in},
    )


CLAIMS: Final[tuple[Case, ...]] = (
    claim("claim.attempt", "a claim that raises the attempt by two", attempt=2),
    claim("claim.attempt", "a claim that leaves the attempt as it was", attempt=0),
    claim("claim.id", "a claim without an id", claim=""),
    Case("claim.id", "a claim with the id of the one before", _with_the_last_claims_id),
    claim("claim.start-time", "a claim without a start time", startTime=None),
    claim("claim.first-start-time", "a first claim without firstStartTime", firstStartTime=None),
    claim("claim.effective", "a claim without a policy in force", effective=None),
    claim("claim.admitted", "a claim that admits its job itself", admitted=True),
    claim("transition.reason", "a claim with a reason", reason="GateOpened"),
    claim("gate.suspend", "a claim of a suspended job", spec={"suspend": True}),
    claim("gate.cancel", "a claim of a cancelled job", spec={"cancel": True}),
    claim("gate.admitted", "a claim before its start time", spec={"notBefore": at()}),
    claim("gate.admitted", "a claim after its deadline", spec={"notAfter": at()}),
    claim(
        "gate.admitted", "a claim before what it depends on", spec={"dependsOn": [{"name": "a"}]}
    ),
    claim("gate.admitted", "a claim of what may be a duplicate", spec={"deduplicationId": "a"}),
    claim(
        "effective.obeys-spec",
        "a claim that allows itself more time than the job",
        spec={"executionTimeoutSeconds": 5},
        effective={"executionTimeoutSeconds": 1800},
    ),
    claim(
        "effective.obeys-spec",
        "a claim with a longer lease than the job asks for",
        spec={"leaseDurationSeconds": 30},
        effective={"leaseDurationSeconds": 60},
        lease={"durationSeconds": 60},
    ),
    *(_against(rule) for rule in _RETRY_RULES),
    claim("lease.starts-unrenewed", "a claim with renewals in stock", lease={"renewals": 5}),
    claim(
        "lease.duration", "a claim with a lease of its own length", lease={"durationSeconds": 600}
    ),
    claim("running.progress", "a claim that comes with progress", progress={"percent": 50}),
    claim("running.checkpoint", "a claim that comes with a checkpoint", checkpoint={"row": 1}),
    claim("result.by-success", "a claim that comes with a result", result={"sum": 1}),
    claim("budget.retries", "a claim that costs a retry", retries=1),
    claim(
        "history.grows", "a claim that writes history", history=[{"time": at(), "phase": "Queued"}]
    ),
    claim("steady.last-transition-time", "a claim that does not say when", lastTransitionTime=None),
)
