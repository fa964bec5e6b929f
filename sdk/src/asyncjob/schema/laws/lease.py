"""Who holds a running job, and for how long."""

from typing import Final

from asyncjob.schema.laws.expressions import all_of
from asyncjob.schema.laws.law import Law, Write

_FIXED: Final = ("holder", "holderUID", "worker", "acquireTime", "durationSeconds")
_KEPT: Final = all_of(f"now.lease.{name} == was.lease.{name}" for name in _FIXED)

PRESENT: Final = Law(
    "lease.iff-running",
    "A job has a lease if, and only if, it is Running.",
    {
        Write.CLAIM: "has(now.lease)",
        Write.MOVE: "!has(now.lease)",
        Write.STAY: "has(now.lease) == has(was.lease)",
    },
    "'a ' + now.phase + ' job ' + (has(now.lease) ? 'has no lease' : 'needs a lease')",
)
UNRENEWED: Final = Law(
    "lease.starts-unrenewed",
    "A new lease has 0 renewals.",
    {Write.CLAIM: "!has(now.lease) || now.lease.renewals == 0"},
)
DURATION: Final = Law(
    "lease.duration",
    "A lease lasts as long as the policy in force says: effective.leaseDurationSeconds.",
    {
        Write.CLAIM: "!has(now.lease) || !has(now.effective)"
        " || now.lease.durationSeconds == now.effective.leaseDurationSeconds",
    },
)
HELD: Final = Law(
    "lease.held",
    "While a job runs, its lease keeps holder, worker, start and duration.",
    {Write.STAY: f"!has(now.lease) || !has(was.lease) || ({_KEPT})"},
    "'the lease of the job is held by ' + was.lease.holder"
    " + ': while it runs only renewals and renewTime change'",
)
RENEWALS: Final = Law(
    "lease.renewals-grow",
    "Renewals never shrink.",
    {
        Write.STAY: "!has(now.lease) || !has(was.lease)"
        " || now.lease.renewals >= was.lease.renewals",
    },
)
