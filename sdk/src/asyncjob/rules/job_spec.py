"""Rules of a job's spec: what it must be by itself, and which control fields may change later.

Everything in the spec but its control fields is immutable.
"""

from typing import Final

from asyncjob.models import AsyncJobSpec
from asyncjob.rules.rule import Rule, unchanged_json

SHAPE_ONE_SOURCE: Final = Rule(
    "shape.one-source",
    "payloadFrom must have exactly one of secretKeyRef, configMapKeyRef and uri.",
    "[has(self.secretKeyRef), has(self.configMapKeyRef), has(self.uri)].filter(set, set).size()"
    " == 1",
)
SHAPE_DEADLINE: Final = Rule(
    "shape.deadline",
    "notAfter must be later than notBefore.",
    "!has(self.notAfter) || !has(self.notBefore) || self.notAfter > self.notBefore",
)
SHAPE_DEPENDENCIES: Final = Rule(
    "shape.dependencies",
    "dependsOn must not name a job or an array twice.",
    # Optional values would be compared more shortly, and exceed the budget for CEL.
    "self.all(one, has(one.name)"
    " ? self.exists_one(other, has(other.name) && other.name == one.name)"
    " : !has(one.array) || self.exists_one(other, has(other.array) && other.array == one.array))",
)
SHAPE_DEPENDENCY: Final = Rule(
    "shape.dependency",
    "An item of dependsOn must have exactly one of name and array; children only go with name.",
    "has(self.name) != has(self.array) && (has(self.name) || !self.?children.orValue(false))",
)
SHAPE_DELAYS: Final = Rule(
    "shape.delays",
    "maxDelaySeconds must not be less than initialDelaySeconds.",
    "!has(self.maxDelaySeconds) || !has(self.initialDelaySeconds)"
    " || self.maxDelaySeconds >= self.initialDelaySeconds",
)


CONTROL_FIELDS: Final = (
    *("cancel", "cancelCascade", "suspend", "redrive", "rerun", "priority"),
    "signals",
)

IMMUTABLE_FIELDS: Final = tuple(
    name
    for name in (field.alias or key for key, field in AsyncJobSpec.model_fields.items())
    if name not in CONTROL_FIELDS
)


def _immutable_field_rule(field: str) -> Rule:
    description = f"spec.{field} cannot be changed; only {', '.join(CONTROL_FIELDS)} can."
    return Rule(f"spec.fixed.{field}", description, unchanged_json("spec", field))


def _growing_counter_rule(counter: str) -> Rule:
    return Rule(
        f"control.{counter}-grows",
        f"spec.{counter} must not decrease.",
        f"spec.?{counter}.orValue(0) >= spec_was.?{counter}.orValue(0)",
    )


SPEC_FIXED_RULES: Final = tuple(_immutable_field_rule(field) for field in IMMUTABLE_FIELDS)
CONTROL_CANCEL_LATCHES: Final = Rule(
    "control.cancel-latches",
    "spec.cancel cannot be reverted.",
    "!spec_was.?cancel.orValue(false) || spec.?cancel.orValue(false)",
)
CONTROL_CANCEL_TOO_LATE: Final = Rule(
    "control.cancel-too-late",
    "A succeeded job cannot be cancelled.",
    "!spec.?cancel.orValue(false) || spec_was.?cancel.orValue(false) || was.phase != 'Succeeded'",
)
CONTROL_REDRIVE_GROWS: Final = _growing_counter_rule("redrive")
CONTROL_REDRIVE_DEAD_LETTER: Final = Rule(
    "control.redrive-dead-letter",
    "spec.redrive can only be increased on a dead letter.",
    "spec.?redrive.orValue(0) <= spec_was.?redrive.orValue(0) || was.phase == 'DeadLetter'",
    "'spec.redrive can only be increased on a dead letter; this job is ' + was.phase",
)
CONTROL_RERUN_GROWS: Final = _growing_counter_rule("rerun")
CONTROL_NOT_AT_CREATION: Final = Rule(
    "control.not-at-creation",
    "redrive and rerun cannot be set at creation; increase them on an existing job.",
    "dyn(variables.template).?redrive.orValue(0) == 0"
    " && dyn(variables.template).?rerun.orValue(0) == 0",
    "(object.kind == 'AsyncJob' ? 'spec' : 'spec.jobTemplate.spec')"
    " + ': redrive and rerun cannot be set at creation; increase them on an existing job'",
)
SPEC_DEPENDS_ON_OTHERS: Final = Rule(
    "spec.depends-on-others",
    "A job cannot depend on itself.",
    "object.kind != 'AsyncJob'"
    " || dyn(variables.template).?dependsOn.orValue([])"
    ".all(one, one.?name.orValue('') != object.metadata.name)",
    "'spec.dependsOn: ' + object.metadata.name + ' cannot depend on itself; leave it out'",
)
CONTROL_PRIORITY: Final = Rule(
    "control.priority",
    "spec.priority cannot be changed while the job is Running.",
    "spec.priority == spec_was.priority || was.phase != 'Running'",
)


_SIGNALS_ADDED: Final = "spec.?signals.orValue({}).size() > spec_was.?signals.orValue({}).size()"

SIGNAL_ONCE: Final = Rule(
    "signal.once",
    "A signal that has been sent is never changed or removed.",
    "!has(dyn(spec_was).signals) || (has(dyn(spec).signals) && dyn(spec_was).signals.all(name, "
    "name in dyn(spec).signals && dyn(spec).signals[name] == dyn(spec_was).signals[name]))",
)
SIGNAL_UNFINISHED: Final = Rule(
    "signal.unfinished",
    "Signals are sent only to a job that has not finished.",
    f"!({_SIGNALS_ADDED}) || !finished",
    "'this job is ' + was.phase + ': signals are sent only to a job that has not finished'",
)
SIGNAL_IN_TIME: Final = Rule(
    "signal.in-time",
    "A signal is refused once the handler has waited for it in vain.",
    f"!({_SIGNALS_ADDED}) || !has(dyn(was).waits) || dyn(was).waits.all(name, "
    "!has(dyn(was).waits[name].over) || dyn(was).waits[name].kind != 'Signal' || "
    "!(name in dyn(spec).signals))",
)
SIGNAL_NOT_AT_CREATION: Final = Rule(
    "signal.not-at-creation",
    "signals cannot be set at creation; send them to an existing job.",
    "!has(dyn(variables.template).signals)",
    "(object.kind == 'AsyncJob' ? 'spec' : 'spec.jobTemplate.spec')"
    " + ': signals cannot be set at creation; send them to an existing job'",
)
