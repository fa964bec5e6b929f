"""The spec of a job never changes, but for its wishes; of those some come only later."""

from typing import Final

from asyncjob.names import CRON_JOBS, GROUP, JOBS, VERSION
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

CREATION: Final = Policy(
    name=f"creation.{GROUP}",
    title="What a job is not created with, nor by a schedule.",
    targets=(Target(GROUP, VERSION, (JOBS, CRON_JOBS)),),
    operations=("CREATE", "UPDATE"),
    conditions={
        "creates": "request.operation == 'CREATE' || object.kind == 'AsyncCronJob'",
        # A plain job has none of these, and every validation costs it several conditions.
        "may-be-wrong": "object.kind == 'AsyncCronJob' || has(dyn(spec).redrive)"
        " || has(dyn(spec).rerun) || has(dyn(spec).dependsOn)",
    },
    variables={
        "template": "object.kind == 'AsyncJob' ? spec : spec.jobTemplate.spec",
    },
    laws=(wishes.UNWISHED, wishes.ANOTHER),  # a further one needs its field in the condition
)
