"""Who holds a running job, and for how long."""

from typing import Final

from asyncjob.schema.laws.expressions import cel_and
from asyncjob.schema.laws.law import Rule, StatusWrite

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
    "A new lease has 0 renewals.",
    {StatusWrite.CLAIM: "!has(now.lease) || now.lease.renewals == 0"},
)
LEASE_DURATION: Final = Rule(
    "lease.duration",
    "A lease lasts as long as the policy in force says: effective.leaseDurationSeconds.",
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
    "Renewals never shrink.",
    {
        StatusWrite.SAME_PHASE: "!has(now.lease) || !has(was.lease)"
        " || now.lease.renewals >= was.lease.renewals",
    },
)
