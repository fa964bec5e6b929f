"""The spec of a job never changes, but for its wishes."""

from typing import Final

from asyncjob.names import GROUP, JOBS, VERSION
from asyncjob.schema.laws import wishes
from asyncjob.schema.policies.policy import Policy, Target

SPEC: Final = Policy(
    name=f"spec.{GROUP}",
    title="What of a job's spec may change, whoever changes it.",
    targets=(Target(GROUP, VERSION, (JOBS,)),),
    operations=("UPDATE",),
    laws=(
        *wishes.IMMUTABLE,
        wishes.CANCEL_LATCHES,
        wishes.CANCEL_TOO_LATE,
        wishes.REDRIVE_GROWS,
        wishes.REDRIVE_DEAD,
        wishes.RERUN_GROWS,
        wishes.PRIORITY,
    ),
)
