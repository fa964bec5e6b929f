"""The spec of a job never changes, but for its wishes; of those some come only later."""

from typing import Final

from asyncjob.names import CRON_JOBS, GROUP, JOBS, VERSION
from asyncjob.schema.laws import wishes
from asyncjob.schema.policies.policy import AdmissionPolicy, PolicyTarget

SPEC_POLICY: Final = AdmissionPolicy(
    name=f"spec.{GROUP}",
    title="What of a job's spec may change, whoever changes it.",
    targets=(PolicyTarget(GROUP, VERSION, (JOBS,)),),
    operations=("UPDATE",),
    rules=(
        *wishes.IMMUTABLE_FIELD_RULES,
        wishes.CANCEL_LATCHES,
        wishes.CANCEL_TOO_LATE,
        wishes.REDRIVE_GROWS,
        wishes.REDRIVE_DEAD_LETTER,
        wishes.RERUN_GROWS,
        wishes.PRIORITY_WHILE_RUNNING,
    ),
)

CREATION_POLICY: Final = AdmissionPolicy(
    name=f"creation.{GROUP}",
    title="What a job is not created with, nor by a schedule.",
    targets=(PolicyTarget(GROUP, VERSION, (JOBS, CRON_JOBS)),),
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
    rules=(
        wishes.NO_COUNTERS_AT_CREATION,
        wishes.DEPENDS_ON_OTHERS,
    ),  # a further one needs its field in the condition
)
