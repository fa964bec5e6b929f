"""The few laws that are rules of the CRDs, and where in the schema each stands.

A field of `spec` or `status` read by CEL in a CRD costs the API server about 20 microseconds,
because it copies the schema of all its siblings; in a policy it costs a fraction of one. So only
that is here which is read once, or stands where there is seldom something to read.
"""

from dataclasses import dataclass
from typing import Final

from asyncjob.json_types import Json
from asyncjob.schema.laws import cron, shape, transitions
from asyncjob.schema.laws.law import Rule


@dataclass(frozen=True)
class CrdRule:
    """A law at the class, or the field of a class (`Class.field`), that `self` is in it.

    `field_path` is the field below it that an error names.
    """

    scope: str
    rule: Rule
    field_path: str = ""

    def manifest(self) -> dict[str, Json]:
        """Return the entry of `x-kubernetes-validations`."""
        expression = self.rule.message_expression
        return {
            "rule": self.rule.expression,
            "message": self.rule.message_text,
            **({"messageExpression": expression} if expression else {}),
            **({"fieldPath": self.field_path} if self.field_path else {}),
        }


CRD_RULES: Final = (
    CrdRule("AsyncJobStatus.phase", transitions.TRANSITION_PAIR),
    CrdRule("AsyncJobSpec", shape.SHAPE_DEADLINE, ".notAfter"),
    CrdRule("AsyncJobSpec.dependsOn", shape.SHAPE_DEPENDENCIES),
    CrdRule("PayloadSource", shape.SHAPE_ONE_SOURCE),
    CrdRule("RetryPolicy", shape.SHAPE_DELAYS, ".maxDelaySeconds"),
    CrdRule("AsyncCronJobSpec.schedule", cron.CRON_SCHEDULE),
    *(CrdRule("AsyncCronJobSpec.schedule", law) for law in cron.CRON_SCHEDULE_FIELDS),
    CrdRule("AsyncCronJobSpec", cron.CRON_TRIGGER_GROWS, ".trigger"),
    CrdRule("Backfill", cron.CRON_BACKFILL_RANGE, ".to"),
    CrdRule("AsyncCronJobStatus", cron.CRON_ADVANCES, ".lastScheduleTime"),
    CrdRule("AsyncCronJobStatus", cron.CRON_SETTLED, ".settledTime"),
)


def validations(rules: tuple[CrdRule, ...] = CRD_RULES) -> dict[str, tuple[dict[str, Json], ...]]:
    """Return the entries of each scope."""
    return {
        scope: tuple(rule.manifest() for rule in rules if rule.scope == scope)
        for scope in dict.fromkeys(rule.scope for rule in rules)
    }
