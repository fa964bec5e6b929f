"""The object to create for one of a file: what it was to do, nothing of what became of it. Pure.

A job or schedule is created suspended, so that nothing starts before a person says so. What only
makes sense in the life before is left out, and said.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from asyncjob.cli.backup.contents import Record
from asyncjob.cli.backup.dependencies import settled
from asyncjob.cli.backup.moving import Moves
from asyncjob.cli.backup.planning import Plan
from asyncjob.cli.backup.remarks import Remark
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
class Body:
    """What is created, and what is to be said about it, with details."""

    manifest: JsonObject
    remarks: tuple[tuple[Remark, str], ...] = ()

    @property
    def namespace(self) -> str:
        """Return where it goes."""
        return text(child(self.manifest, "metadata"), "namespace")

    @property
    def name(self) -> str:
        """Return how it is called there."""
        return text(child(self.manifest, "metadata"), "name")


@dataclass(frozen=True, slots=True)
class Around:
    """What a body depends on besides its object. `names`: what jobs are called where they go.

    `uids` are those of schedules now, by those of the file.
    """

    plan: Plan
    moves: Moves
    names: Mapping[tuple[str, str], str]
    uids: Mapping[str, str]


def body(obj: JsonObject, record: Record, around: Around) -> Body:
    """Return what to create."""
    spec, remarks = _spec(obj, record, around)
    metadata = child(obj, "metadata")
    if items(metadata, "ownerReferences"):
        remarks.append((Remark.OWNERS, record.key.name))
    if items(metadata, "finalizers"):
        remarks.append((Remark.FINALIZERS, record.key.name))
    manifest: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": record.key.kind,
        "metadata": _metadata(obj, record, around),
        "spec": spec,
    }
    return Body(manifest, tuple(remarks))


def _metadata(obj: JsonObject, record: Record, around: Around) -> JsonObject:
    metadata = child(obj, "metadata")
    labels: dict[str, Json] = dict(child(metadata, "labels"))
    if record.key.kind != QUEUE_KIND:
        before = flag(child(obj, "spec"), "suspend")
        labels[RESTORED_LABEL] = RESTORED_UNCHANGED if before else RESTORED_SUSPENDED
    schedule = text(labels, CRON_JOB_UID_LABEL)
    if schedule in around.uids:
        labels[CRON_JOB_UID_LABEL] = around.uids[schedule]
    _, namespace, name = record.key
    return {
        "name": around.names.get((namespace, name), name) if record.key.kind == JOB_KIND else name,
        "namespace": around.moves.namespace(namespace),
        **({"labels": labels} if labels else {}),
        "annotations": {
            **child(metadata, "annotations"),
            RESTORED_FROM_ANNOTATION: record.uid or record.where,
        },
    }


_Remarks = list[tuple[Remark, str]]


def _spec(obj: JsonObject, record: Record, around: Around) -> tuple[JsonObject, _Remarks]:
    spec = child(obj, "spec")
    match record.key.kind:
        case kind if kind == JOB_KIND:
            return _job(obj, record, around)
        case kind if kind == CRON_JOB_KIND:
            return _schedule(spec, record)
        case _:
            return spec, []


def _schedule(spec: JsonObject, record: Record) -> tuple[JsonObject, _Remarks]:
    """Leave out what a new schedule would act upon once more."""
    gone = ((Remark.TRIGGER, "trigger"), (Remark.BACKFILL, "backfill"))
    remarks = [(remark, record.key.name) for remark, field in gone if spec.get(field)]
    left = {name: value for name, value in spec.items() if name not in {"trigger", "backfill"}}
    return {**left, "suspend": True}, remarks


def _job(obj: JsonObject, record: Record, around: Around) -> tuple[JsonObject, _Remarks]:
    left = {
        name: value
        for name, value in child(obj, "spec").items()
        if name not in {"redrive", "rerun", "dependsOn"}
    }
    remarks: _Remarks = [(Remark.RERUN, record.key.name)] if record.wants_rerun else []
    if record.begun and "notAfter" in left:
        del left["notAfter"]
        remarks.append((Remark.DEADLINE, record.key.name))
    waits, hopeless = _waits(obj, record, around)
    remarks += [(Remark.HOPELESS, f"{record.key.name} for {name}") for name in hopeless]
    return {**left, **({"dependsOn": waits} if waits else {}), "suspend": True}, remarks


def _waits(
    obj: JsonObject, record: Record, around: Around
) -> tuple[list[JsonObject], tuple[str, ...]]:
    """Return what the job waits for; one that was let through waits for nothing any more."""
    if record.begun or flag(child(obj, "status"), "admitted"):
        return [], ()
    namespace = record.key.namespace
    found = settled(items(child(obj, "spec"), "dependsOn"), namespace, around.plan)
    named: list[JsonObject] = [
        {**one, "name": around.names.get((namespace, text(one, "name")), text(one, "name"))}
        for one in found.left
    ]
    return named, found.hopeless
