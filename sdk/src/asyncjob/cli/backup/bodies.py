"""The object to create for one of a file: what it was to do, nothing of what became of it. Pure.

A job or schedule is created suspended, so that nothing starts before a person says so. What only
makes sense in the life before is left out, and said.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from asyncjob.cli.backup.contents import ExportRecord
from asyncjob.cli.backup.dependencies import remaining_dependencies
from asyncjob.cli.backup.moving import NamespaceMap
from asyncjob.cli.backup.planning import RestorePlan
from asyncjob.cli.backup.remarks import RestoreNote
from asyncjob.json_types import Json, JsonObject, child, flag, items, text
from asyncjob.names import (
    API_VERSION,
    CRON_JOB_KIND,
    CRON_JOB_UID_LABEL,
    JOB_KIND,
    QUEUE_KIND,
    RESTORED_FROM_ANNOTATION,
    RESTORED_LABEL,
    RESTORED_SUSPENDED,
    RESTORED_UNCHANGED,
)


@dataclass(frozen=True, slots=True)
class RestoredObject:
    """What is created, and what is to be said about it, with details."""

    manifest: JsonObject
    notes: tuple[tuple[RestoreNote, str], ...] = ()

    @property
    def namespace(self) -> str:
        """Return where it goes."""
        return text(child(self.manifest, "metadata"), "namespace")

    @property
    def name(self) -> str:
        """Return how it is called there."""
        return text(child(self.manifest, "metadata"), "name")


@dataclass(frozen=True, slots=True)
class RestoreContext:
    """What a body depends on besides its object. `names`: what jobs are called where they go.

    `uids` are those of schedules now, by those of the file.
    """

    plan: RestorePlan
    namespaces: NamespaceMap
    renamed_jobs: Mapping[tuple[str, str], str]
    cron_job_uids: Mapping[str, str]


def restored_object(
    obj: JsonObject, record: ExportRecord, context: RestoreContext
) -> RestoredObject:
    """Return what to create."""
    spec, remarks = _spec(obj, record, context)
    metadata = child(obj, "metadata")
    if items(metadata, "ownerReferences"):
        remarks.append((RestoreNote.OWNERS, record.key.name))
    if items(metadata, "finalizers"):
        remarks.append((RestoreNote.FINALIZERS, record.key.name))
    manifest: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": record.key.kind,
        "metadata": _metadata(obj, record, context),
        "spec": spec,
    }
    return RestoredObject(manifest, tuple(remarks))


def _metadata(obj: JsonObject, record: ExportRecord, context: RestoreContext) -> JsonObject:
    metadata = child(obj, "metadata")
    labels: dict[str, Json] = dict(child(metadata, "labels"))
    if record.key.kind != QUEUE_KIND:
        before = flag(child(obj, "spec"), "suspend")
        labels[RESTORED_LABEL] = RESTORED_UNCHANGED if before else RESTORED_SUSPENDED
    schedule = text(labels, CRON_JOB_UID_LABEL)
    if schedule in context.cron_job_uids:
        labels[CRON_JOB_UID_LABEL] = context.cron_job_uids[schedule]
    _, namespace, name = record.key
    return {
        "name": context.renamed_jobs.get((namespace, name), name)
        if record.key.kind == JOB_KIND
        else name,
        "namespace": context.namespaces.target_namespace(namespace),
        **({"labels": labels} if labels else {}),
        "annotations": {
            **child(metadata, "annotations"),
            RESTORED_FROM_ANNOTATION: record.uid or record.location,
        },
    }


_Notes = list[tuple[RestoreNote, str]]


def _spec(
    obj: JsonObject, record: ExportRecord, context: RestoreContext
) -> tuple[JsonObject, _Notes]:
    spec = child(obj, "spec")
    match record.key.kind:
        case kind if kind == JOB_KIND:
            return _job_spec(obj, record, context)
        case kind if kind == CRON_JOB_KIND:
            return _cron_job_spec(spec, record)
        case _:
            return spec, []


def _cron_job_spec(spec: JsonObject, record: ExportRecord) -> tuple[JsonObject, _Notes]:
    """Leave out what a new schedule would act upon once more."""
    gone = ((RestoreNote.TRIGGER, "trigger"), (RestoreNote.BACKFILL, "backfill"))
    remarks = [(remark, record.key.name) for remark, field in gone if spec.get(field)]
    left = {name: value for name, value in spec.items() if name not in {"trigger", "backfill"}}
    return {**left, "suspend": True}, remarks


def _job_spec(
    obj: JsonObject, record: ExportRecord, context: RestoreContext
) -> tuple[JsonObject, _Notes]:
    left = {
        name: value
        for name, value in child(obj, "spec").items()
        if name not in {"redrive", "rerun", "dependsOn"}
    }
    remarks: _Notes = [(RestoreNote.RERUN, record.key.name)] if record.rerun_requested else []
    if record.started and "notAfter" in left:
        del left["notAfter"]
        remarks.append((RestoreNote.DEADLINE, record.key.name))
    waits, hopeless = _depends_on(obj, record, context)
    remarks += [(RestoreNote.UNSATISFIABLE, f"{record.key.name} for {name}") for name in hopeless]
    return {**left, **({"dependsOn": waits} if waits else {}), "suspend": True}, remarks


def _depends_on(
    obj: JsonObject, record: ExportRecord, context: RestoreContext
) -> tuple[list[JsonObject], tuple[str, ...]]:
    """Return what the job waits for; one that was let through waits for nothing any more."""
    if record.started or flag(child(obj, "status"), "admitted"):
        return [], ()
    namespace = record.key.namespace
    found = remaining_dependencies(items(child(obj, "spec"), "dependsOn"), namespace, context.plan)
    named: list[JsonObject] = [
        {**one, "name": context.renamed_jobs.get((namespace, text(one, "name")), text(one, "name"))}
        for one in found.remaining
    ]
    return named, found.unsatisfiable
