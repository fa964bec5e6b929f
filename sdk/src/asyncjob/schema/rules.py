"""The few laws that are rules of the CRDs, and where in the schema each stands.

A field of `spec` or `status` read by CEL in a CRD costs the API server about 20 microseconds,
because it copies the schema of all its siblings; in a policy it costs a fraction of one. So only
that is here which is read once, or stands where there is seldom something to read.
"""

from dataclasses import dataclass
from typing import Final

from asyncjob.json_types import Json
from asyncjob.schema.laws import cron, shape, transitions
from asyncjob.schema.laws.law import Law


@dataclass(frozen=True)
class Rule:
    """A law at the class, or the field of a class (`Class.field`), that `self` is in it.

    `where` is the field below it that an error names.
    """

    scope: str
    law: Law
    where: str = ""

    def manifest(self) -> dict[str, Json]:
        """Return the entry of `x-kubernetes-validations`."""
        expression = self.law.message_expression
        return {
            "rule": self.law.expression,
            "message": self.law.text,
            **({"messageExpression": expression} if expression else {}),
            **({"fieldPath": self.where} if self.where else {}),
        }


RULES: Final = (
    Rule("AsyncJobStatus.phase", transitions.PAIR),
    Rule("AsyncJobSpec", shape.DEADLINE, ".notAfter"),
    Rule("AsyncJobSpec.dependsOn", shape.DEPENDENCIES),
    Rule("PayloadSource", shape.SOURCE),
    Rule("RetryPolicy", shape.DELAYS, ".maxDelaySeconds"),
    Rule("AsyncCronJobSpec.schedule", cron.SCHEDULE),
    *(Rule("AsyncCronJobSpec.schedule", law) for law in cron.FIELDS),
    Rule("AsyncCronJobSpec", cron.TRIGGER_GROWS, ".trigger"),
    Rule("Backfill", cron.RANGE, ".to"),
    Rule("AsyncCronJobStatus", cron.ADVANCES, ".lastScheduleTime"),
    Rule("AsyncCronJobStatus", cron.SETTLED, ".settledTime"),
)


def validations(rules: tuple[Rule, ...] = RULES) -> dict[str, tuple[dict[str, Json], ...]]:
    """Return the entries of each scope."""
    return {
        scope: tuple(rule.manifest() for rule in rules if rule.scope == scope)
        for scope in dict.fromkeys(rule.scope for rule in rules)
    }
