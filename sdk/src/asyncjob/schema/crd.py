"""The four CustomResourceDefinitions: names, columns, selectable fields, schema and validations.

Only few rules stand in the CRDs. A field of `spec` or `status` read by CEL in a CRD costs the API
server about 20 microseconds, because it copies the schema of all its siblings; in a policy it costs
a fraction of that. So only those are here that read once, or stand where there is seldom something
to read.
"""

from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel

from asyncjob import names
from asyncjob.columns import ARRAY_COLUMNS, CRON_JOB_COLUMNS, JOB_COLUMNS, QUEUE_COLUMNS, Column
from asyncjob.json_types import Json, as_object, child
from asyncjob.models import AsyncArray, AsyncCronJob, AsyncJob, AsyncQueue
from asyncjob.rules import array_policies, cron_job, job_spec, transitions
from asyncjob.rules.rule import Rule
from asyncjob.schema.structural import Schema, structural


@dataclass(frozen=True)
class CrdRule:
    """A rule at the class, or the field of a class (`Class.field`), that `self` is in it.

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
    CrdRule("AsyncJobSpec", job_spec.SHAPE_DEADLINE, ".notAfter"),
    CrdRule("AsyncJobSpec.dependsOn", job_spec.SHAPE_DEPENDENCIES),
    CrdRule("AsyncArraySpec.dependsOn", array_policies.ARRAY_DEPENDENCIES),
    CrdRule("Dependency", job_spec.SHAPE_DEPENDENCY),
    CrdRule("PayloadSource", job_spec.SHAPE_ONE_SOURCE),
    CrdRule("RetryPolicy", job_spec.SHAPE_DELAYS, ".maxDelaySeconds"),
    CrdRule("AsyncCronJobSpec.schedule", cron_job.CRON_SCHEDULE),
    *(CrdRule("AsyncCronJobSpec.schedule", rule) for rule in cron_job.CRON_SCHEDULE_FIELDS),
    CrdRule("AsyncCronJobSpec", cron_job.CRON_TRIGGER_GROWS, ".trigger"),
    CrdRule("Backfill", cron_job.CRON_BACKFILL_RANGE, ".to"),
    CrdRule("AsyncCronJobStatus", cron_job.CRON_ADVANCES, ".lastScheduleTime"),
    CrdRule("AsyncCronJobStatus", cron_job.CRON_SETTLED, ".settledTime"),
    CrdRule("AsyncArraySpec", array_policies.ARRAY_ONE_LIMIT, ".maxFailedPercent"),
)


def validations(rules: tuple[CrdRule, ...] = CRD_RULES) -> dict[str, tuple[dict[str, Json], ...]]:
    """Return the entries of each scope."""
    return {
        scope: tuple(rule.manifest() for rule in rules if rule.scope == scope)
        for scope in dict.fromkeys(rule.scope for rule in rules)
    }


RESOURCE_CATEGORY: Final = "async"
"""`kubectl get async` lists all kinds; `asyncjob` itself would take the place of the kind."""


@dataclass(frozen=True)
class CustomResource:
    """One kind, and what is not in its model."""

    model: type[BaseModel]
    kind: str
    plural: str
    short_name: str
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    status_default: Schema = field(default_factory=dict)


CUSTOM_RESOURCES: Final = (
    CustomResource(
        AsyncJob,
        names.JOB_KIND,
        names.JOBS,
        "aj",
        JOB_COLUMNS,
        (
            ".spec.queue",
            ".spec.type",
            ".spec.cancel",
            ".spec.deduplicationId",
            ".spec.priority",
            ".status.phase",
        ),
        {"phase": "Queued"},
    ),
    CustomResource(AsyncQueue, names.QUEUE_KIND, names.QUEUES, "aq", QUEUE_COLUMNS),
    CustomResource(AsyncCronJob, names.CRON_JOB_KIND, names.CRON_JOBS, "acj", CRON_JOB_COLUMNS),
    CustomResource(
        AsyncArray,
        names.ARRAY_KIND,
        names.ARRAYS,
        "aa",
        ARRAY_COLUMNS,
        status_default={"phase": "Pending"},
    ),
)


def crd(resource: CustomResource, rules: tuple[CrdRule, ...] = CRD_RULES) -> Schema:
    """Return the manifest of one CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{names.GROUP}",
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {
            "group": names.GROUP,
            "scope": "Namespaced",
            "names": _names(resource),
            "versions": [_version(resource, rules)],
        },
    }


def _names(resource: CustomResource) -> Schema:
    return {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "shortNames": [resource.short_name],
        "categories": [RESOURCE_CATEGORY],
    }


def _version(resource: CustomResource, rules: tuple[CrdRule, ...]) -> Schema:
    version: Schema = {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in resource.columns],
    }
    if resource.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in resource.selectable]
    return {**version, "schema": {"openAPIV3Schema": _schema(resource, rules)}}


def _column(column: Column) -> Json:
    return {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.json_path,
        "description": column.description,
        **({"priority": 1} if column.wide else {}),
    }


def _schema(resource: CustomResource, rules: tuple[CrdRule, ...]) -> Schema:
    schema = structural(resource.model, validations(rules))
    if not resource.status_default:
        return schema
    properties = child(schema, "properties")
    status = {**as_object(properties["status"]), "default": resource.status_default}
    return {**schema, "properties": {**properties, "status": status}}
