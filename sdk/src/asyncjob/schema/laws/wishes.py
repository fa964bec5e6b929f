"""What of a spec changes later, and how; all else of it never does."""

from typing import Final

from asyncjob.models import AsyncJobSpec
from asyncjob.schema.laws.expressions import same_json
from asyncjob.schema.laws.law import Law

WISHES: Final = ("cancel", "cancelCascade", "suspend", "redrive", "rerun", "priority")

FIXED: Final = tuple(
    name
    for name in (field.alias or key for key, field in AsyncJobSpec.model_fields.items())
    if name not in WISHES
)


def _fixed(field: str) -> Law:
    demand = f"spec.{field} cannot be changed; only {', '.join(WISHES)} can."
    return Law(f"spec.fixed.{field}", demand, same_json("spec", field))


def _grows(wish: str) -> Law:
    return Law(
        f"wish.{wish}-grows",
        f"spec.{wish} never shrinks.",
        f"spec.?{wish}.orValue(0) >= spec_was.?{wish}.orValue(0)",
    )


IMMUTABLE: Final = tuple(_fixed(field) for field in FIXED)
CANCEL_LATCHES: Final = Law(
    "wish.cancel-latches",
    "spec.cancel cannot be taken back.",
    "!spec_was.?cancel.orValue(false) || spec.?cancel.orValue(false)",
)
CANCEL_TOO_LATE: Final = Law(
    "wish.cancel-too-late",
    "A succeeded job cannot be cancelled.",
    "!spec.?cancel.orValue(false) || spec_was.?cancel.orValue(false) || was.phase != 'Succeeded'",
)
REDRIVE_GROWS: Final = _grows("redrive")
REDRIVE_DEAD: Final = Law(
    "wish.redrive-dead-letter",
    "spec.redrive is raised only on a dead letter.",
    "spec.?redrive.orValue(0) <= spec_was.?redrive.orValue(0) || was.phase == 'DeadLetter'",
    "'spec.redrive is raised only on a dead letter; this job is ' + was.phase",
)
RERUN_GROWS: Final = _grows("rerun")
UNWISHED: Final = Law(
    "wish.not-at-creation",
    "A job is created without redrive and rerun: both are about what it has done.",
    "dyn(variables.template).?redrive.orValue(0) == 0"
    " && dyn(variables.template).?rerun.orValue(0) == 0",
    "(object.kind == 'AsyncJob' ? 'spec' : 'spec.jobTemplate.spec')"
    " + ': redrive and rerun are raised on a job that exists; leave them out of one to be created'",
)
ANOTHER: Final = Law(
    "spec.depends-on-others",
    "A job does not depend on itself.",
    "object.kind != 'AsyncJob'"
    " || dyn(variables.template).?dependsOn.orValue([]).all(one, one.name != object.metadata.name)",
    "'spec.dependsOn: ' + object.metadata.name + ' cannot wait for itself; leave it out'",
)
PRIORITY: Final = Law(
    "wish.priority",
    "spec.priority does not change while the job runs.",
    "spec.priority == spec_was.priority || was.phase != 'Running'",
)
