"""Rules of a claim: what it sets, the policy that it puts into force, and the lease it takes."""

from typing import Final

from asyncjob.models import RetryPolicy
from asyncjob.rules.rule import Rule, StatusWrite, cel_and, unchanged


def _only_on_claim(field: str, on_claim: str) -> dict[StatusWrite, str]:
    return {
        StatusWrite.CLAIM: on_claim,
        StatusWrite.PHASE_CHANGE: unchanged(field),
        StatusWrite.SAME_PHASE: unchanged(field),
    }


CLAIM_ATTEMPT: Final = Rule(
    "claim.attempt",
    "A claim increases attempt by exactly one; nothing else changes it.",
    _only_on_claim("attempt", "now.attempt == was.attempt + 1"),
    "'attempt cannot go from ' + string(was.attempt) + ' to ' + string(now.attempt)"
    " + ' with the phase going from ' + was.phase + ' to ' + now.phase"
    " + ': a claim increases it by exactly one, nothing else changes it'",
)
CLAIM_ID: Final = Rule(
    "claim.id",
    "Each claim sets a new claim id; nothing else changes it.",
    _only_on_claim("claim", "now.?claim.orValue('') != '' && now.?claim != was.?claim"),
    "'claim cannot go from ' + was.?claim.orValue('(none)') + ' to '"
    " + now.?claim.orValue('(none)') + ' with the phase going from ' + was.phase + ' to '"
    " + now.phase + ': each claim sets a new id, nothing else changes it'",
)
CLAIM_START_TIME: Final = Rule(
    "claim.start-time",
    "A claim sets startTime, and nothing else changes it.",
    _only_on_claim("startTime", "has(now.startTime)"),
)
CLAIM_FIRST_START_TIME: Final = Rule(
    "claim.first-start-time",
    "The first claim sets firstStartTime, and nothing changes it afterwards.",
    _only_on_claim(
        "firstStartTime",
        f"has(was.firstStartTime) ? {unchanged('firstStartTime')} : has(now.firstStartTime)",
    ),
)
CLAIM_EFFECTIVE: Final = Rule(
    "claim.effective",
    "A claim sets effective, and nothing else changes it.",
    _only_on_claim("effective", "has(now.effective)"),
)
CLAIM_ADMITTED: Final = Rule(
    "claim.admitted",
    "admitted is set on entering Queued or while Queued. It is kept by a claim and while the job "
    "runs, and removed on leaving Running and by a redrive.",
    {
        StatusWrite.CLAIM: unchanged("admitted"),
        StatusWrite.PHASE_CHANGE: "!has(now.admitted)"
        " || (now.phase == 'Queued' && !(was.phase in ['Running', 'DeadLetter']))",
        StatusWrite.SAME_PHASE: f"now.phase == 'Queued' || {unchanged('admitted')}",
    },
)


_SPEC_FIELDS: Final = ("executionTimeoutSeconds", "leaseDurationSeconds")
_RETRY_FIELDS: Final = tuple(
    field.alias or name for name, field in RetryPolicy.model_fields.items()
)


def _same_in_effective(path: str, names: tuple[str, ...]) -> str:
    return cel_and(
        f"!has({path}.{name}) || {path}.{name} == now.effective.{name}" for name in names
    )


EFFECTIVE_OBEYS_SPEC: Final = Rule(
    "effective.obeys-spec",
    f"Where the spec sets {' or '.join(_SPEC_FIELDS)}, effective has the same value.",
    {StatusWrite.CLAIM: f"!has(now.effective) || ({_same_in_effective('spec', _SPEC_FIELDS)})"},
)
EFFECTIVE_OBEYS_RETRY_POLICY: Final = Rule(
    "effective.obeys-retry-policy",
    "Where spec.retryPolicy sets a value, effective has the same value.",
    {
        StatusWrite.CLAIM: "!has(now.effective) || !has(spec.retryPolicy)"
        f" || ({_same_in_effective('spec.retryPolicy', _RETRY_FIELDS)})",
    },
)


_FIXED_LEASE_FIELDS: Final = ("holder", "holderUID", "worker", "acquireTime", "durationSeconds")
_LEASE_UNCHANGED: Final = cel_and(
    f"now.lease.{name} == was.lease.{name}" for name in _FIXED_LEASE_FIELDS
)

LEASE_IFF_RUNNING: Final = Rule(
    "lease.iff-running",
    "A job has a lease if, and only if, it is Running.",
    {
        StatusWrite.CLAIM: "has(now.lease)",
        StatusWrite.PHASE_CHANGE: "!has(now.lease)",
        StatusWrite.SAME_PHASE: "has(now.lease) == has(was.lease)",
    },
    "'a ' + now.phase + ' job ' + (has(now.lease) ? 'has no lease' : 'needs a lease')",
)
LEASE_STARTS_UNRENEWED: Final = Rule(
    "lease.starts-unrenewed",
    "A new lease must have 0 renewals.",
    {StatusWrite.CLAIM: "!has(now.lease) || now.lease.renewals == 0"},
)
LEASE_DURATION: Final = Rule(
    "lease.duration",
    "The duration of a lease equals effective.leaseDurationSeconds.",
    {
        StatusWrite.CLAIM: "!has(now.lease) || !has(now.effective)"
        " || now.lease.durationSeconds == now.effective.leaseDurationSeconds",
    },
)
LEASE_HELD: Final = Rule(
    "lease.held",
    "While a job runs, its lease keeps holder, worker, start and duration.",
    {StatusWrite.SAME_PHASE: f"!has(now.lease) || !has(was.lease) || ({_LEASE_UNCHANGED})"},
    "'the lease of the job is held by ' + was.lease.holder"
    " + ': while it runs only renewals and renewTime change'",
)
LEASE_RENEWALS_GROW: Final = Rule(
    "lease.renewals-grow",
    "lease.renewals must not decrease.",
    {
        StatusWrite.SAME_PHASE: "!has(now.lease) || !has(was.lease)"
        " || now.lease.renewals >= was.lease.renewals",
    },
)
