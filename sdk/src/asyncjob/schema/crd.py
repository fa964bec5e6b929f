"""The three CustomResourceDefinitions: names, columns, selectable fields, schema and rules."""

from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel

from asyncjob import names
from asyncjob.columns import CRON_JOB_COLUMNS, JOB_COLUMNS, QUEUE_COLUMNS, Column
from asyncjob.json_types import Json, as_object, child
from asyncjob.models import AsyncCronJob, AsyncJob, AsyncQueue
from asyncjob.schema.rules import CRD_RULES, CrdRule, validations
from asyncjob.schema.structural import Schema, structural

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
            ".status.phase",
        ),
        {"phase": "Queued"},
    ),
    CustomResource(AsyncQueue, names.QUEUE_KIND, names.QUEUES, "aq", QUEUE_COLUMNS),
    CustomResource(AsyncCronJob, names.CRON_JOB_KIND, names.CRON_JOBS, "acj", CRON_JOB_COLUMNS),
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
