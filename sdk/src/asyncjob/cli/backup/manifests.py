"""The manifest to create for a record.

Its namespace and name in the target cluster, the dependencies that are left, and a spec without
what belongs to its former run. Jobs, arrays and cron jobs are created suspended, so that nothing
starts before somebody resumes it; whatever is left out is noted. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import click

from asyncjob.cli.backup.plan import RestorePlan
from asyncjob.cli.backup.records import ExportContents, ExportRecord, ObjectKey
from asyncjob.json_types import (
    Json,
    JsonObject,
    as_object,
    child,
    flag,
    integer,
    items,
    opt_text,
    text,
)
from asyncjob.lifecycle.arrays.item_results import results_folder
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.lifecycle.arrays.skipped_items import remaining_items, unskipped_items
from asyncjob.lifecycle.job_view import called
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import (
    API_VERSION,
    ARRAY_KIND,
    CRON_JOB_KIND,
    CRON_JOB_UID_LABEL,
    JOB_KIND,
    QUEUE_KIND,
    RESTORED_FROM_ANNOTATION,
    RESTORED_LABEL,
    RESTORED_SUSPENDED,
    RESTORED_UNCHANGED,
    is_namespace,
)
from asyncjob.shards import shard_label
from asyncjob.submission import dedup_name_prefix, key_name, sequence_name, sequence_of


class RestoreNote(StrEnum):
    """What is said of an object that comes back other than it was; counted."""

    OWNERS = "owners"
    FINALIZERS = "finalizers"
    DEADLINE = "deadline"
    NEW_DEADLINE = "new-deadline"
    UNSATISFIABLE = "unsatisfiable"
    RERUN = "rerun"
    SIGNALS = "signals"
    TRIGGER = "trigger"
    BACKFILL = "backfill"
    ITEMS_AGAIN = "items-again"
    RESULTS = "results"
    FOREIGN_RESULTS = "foreign-results"


RESTORE_NOTE_DOCS: Final[Mapping[RestoreNote, str]] = {
    RestoreNote.OWNERS: "owner references are left out: the owners have new UIDs",
    RestoreNote.FINALIZERS: "finalizers are left out",
    RestoreNote.DEADLINE: "notAfter is left out of jobs that had started before it",
    RestoreNote.NEW_DEADLINE: "deadlineSeconds counts from the creation of the new job",
    RestoreNote.UNSATISFIABLE: "jobs or arrays depend on what is not restored",
    RestoreNote.RERUN: "reruns requested but not created yet must be requested again",
    RestoreNote.SIGNALS: "signals are left out: the new job waits for them again",
    RestoreNote.TRIGGER: "trigger is left out: it was processed, or must be requested again",
    RestoreNote.BACKFILL: "backfill is left out: its remaining runs must be requested again",
    RestoreNote.ITEMS_AGAIN: "items that are done and cannot be listed run again",
    RestoreNote.RESULTS: "results of items that do not run again stay in the old array's folder",
    RestoreNote.FOREIGN_RESULTS: "results.uri was for another namespace; a worker writes only into "
    "results/NAMESPACE of its own",
}


@dataclass(frozen=True, slots=True)
class NamespaceMap:
    """Namespaces by those of the file; what is not among them stays where it was."""

    targets: Mapping[str, str] = field(default_factory=dict)

    def target_namespace(self, namespace: str) -> str:
        """Return where objects of a namespace go."""
        return self.targets.get(namespace, namespace)

    def target_name(self, job: JsonObject) -> str:
        """Return how a job is called where it goes."""
        metadata, spec = child(job, "metadata"), child(job, "spec")
        name, old = text(metadata, "name"), text(metadata, "namespace")
        new = self.target_namespace(old)
        return name if new == old else _derived_name(name, spec, old, new)


def _derived_name(name: str, spec: JsonObject, old: str, new: str) -> str:
    key, dedup = opt_text(spec, "idempotencyKey"), opt_text(spec, "deduplicationId")
    number = sequence_of(name, dedup_name_prefix(old, dedup)) if dedup else 0
    if dedup and number:
        return sequence_name(dedup_name_prefix(new, dedup), number)
    if key and name == key_name(old, key):
        return key_name(new, key)
    return name


def namespace_map(
    contents: ExportContents, namespace: str | None, pairs: tuple[str, ...]
) -> NamespaceMap:
    """Return where all goes; raises UsageError where that is not clear."""
    if namespace and pairs:
        raise click.UsageError("use --namespace or --map, not both")
    if namespace:
        return _map_all_to(contents.namespaces, namespace)
    targets = dict(map(_parse_mapping, pairs))
    unknown = sorted(set(targets) - set(contents.namespaces))
    if unknown:
        raise click.UsageError(f"--map: the file has nothing of namespace {unknown[0]}")
    return NamespaceMap(targets)


def _map_all_to(namespaces: list[str], target: str) -> NamespaceMap:
    if len(namespaces) > 1:
        raise click.UsageError(
            f"--namespace: the file is of {len(namespaces)} namespaces "
            f"({', '.join(sorted(namespaces)[:3])}, …); use --map OLD=NEW for each that moves"
        )
    return NamespaceMap(dict.fromkeys(namespaces, target))


def _parse_mapping(text: str) -> tuple[str, str]:
    old, _, new = text.partition("=")
    if not (is_namespace(old) and is_namespace(new)):
        raise click.UsageError(f"--map: {text!r} is not OLD=NEW with two namespace names")
    return old, new


MAX_DEPENDENCIES = 20
"""Maximum number of dependencies of a job or an array."""


@dataclass(frozen=True, slots=True)
class RemainingDependencies:
    """The dependencies left, by their names in the file, and those that nobody will satisfy."""

    remaining: tuple[JsonObject, ...] = ()
    unsatisfiable: tuple[str, ...] = field(default=())


def remaining_dependencies(
    dependencies: Sequence[Json], namespace: str, plan: RestorePlan
) -> RemainingDependencies:
    """Return what is left for a job or an array to wait for.

    In the place of a job that is over come those of its children that are not, if they were meant.
    """
    left: dict[str, JsonObject] = {}
    unsatisfiable = []
    for one in map(as_object, dependencies):
        found = tuple(_remaining(one, namespace, plan))
        unsatisfiable += [
            _called(each) for each in found if _is_unsatisfiable(each, namespace, plan)
        ]
        left.update((_called(each), each) for each in found)
    if len(left) > MAX_DEPENDENCIES:
        return RemainingDependencies(tuple(map(as_object, dependencies)), tuple(unsatisfiable))
    return RemainingDependencies(tuple(left.values()), tuple(unsatisfiable))


def _remaining(dependency: JsonObject, namespace: str, plan: RestorePlan) -> Iterator[JsonObject]:
    record = _dependency_record(dependency, namespace, plan.contents)
    if record is None or not _satisfies(record, dependency):
        yield dependency
    elif flag(dependency, "children"):
        for child in plan.contents.children.get(record.uid, ()):
            if not _satisfies(child, dependency) or plan.contents.children.get(child.uid):
                yield {**dependency, "name": child.key.name}


def _dependency_record(
    dependency: JsonObject, namespace: str, contents: ExportContents
) -> ExportRecord | None:
    array = text(dependency, "array")
    kind, name = (ARRAY_KIND, array) if array else (JOB_KIND, text(dependency, "name"))
    return contents.by_key.get(ObjectKey(kind, namespace, name))


def _called(dependency: JsonObject) -> str:
    """Return what people call a dependency, which no other of the same object is called."""
    array = text(dependency, "array")
    return called(ARRAY_KIND, array) if array else text(dependency, "name")


def _satisfies(record: ExportRecord, dependency: JsonObject) -> bool:
    any_end = text(dependency, "outcome") == "Any"
    has_succeeded = Phase.SUCCEEDED is record.phase or ArrayPhase.SUCCEEDED is record.array_phase
    return record.is_done and (any_end or has_succeeded)


def _is_unsatisfiable(dependency: JsonObject, namespace: str, plan: RestorePlan) -> bool:
    """Return whether the file has the job or array, and yet it does not come back."""
    record = _dependency_record(dependency, namespace, plan.contents)
    return record is not None and record not in plan.restored


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
    """What a body depends on besides its object.

    `renamed_jobs` gives the new names of jobs by their namespace and name in the file,
    `cron_job_uids` the UIDs of cron jobs now by those in the file.
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
    cron_job_uid = text(labels, CRON_JOB_UID_LABEL)
    if cron_job_uid in context.cron_job_uids:
        labels[CRON_JOB_UID_LABEL] = context.cron_job_uids[cron_job_uid]
    _, namespace, name = record.key
    if record.key.kind == JOB_KIND:
        name = context.renamed_jobs.get((namespace, name), name)
        labels.update(shard_label(name))
    return {
        "name": name,
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
        case kind if kind == ARRAY_KIND:
            return _array_spec(obj, record, context)
        case _:
            return spec, []


def _cron_job_spec(spec: JsonObject, record: ExportRecord) -> tuple[JsonObject, _Notes]:
    """Leave out what a new cron job would act upon once more."""
    gone = ((RestoreNote.TRIGGER, "trigger"), (RestoreNote.BACKFILL, "backfill"))
    remarks = [(remark, record.key.name) for remark, field in gone if spec.get(field)]
    left = {name: value for name, value in spec.items() if name not in {"trigger", "backfill"}}
    return {**left, "suspend": True}, remarks


def _array_spec(
    obj: JsonObject, record: ExportRecord, context: RestoreContext
) -> tuple[JsonObject, _Notes]:
    spec = child(obj, "spec")
    left = {name: spec[name] for name in spec if name not in {"redrive", "dependsOn"}}
    items, notes = _array_items(obj, record, context)
    waits, remarks = _depends_on(obj, record, context)
    notes += _results_notes(obj, record, context)
    return {**left, **waits, "items": items, "suspend": True}, [*notes, *remarks]


def _results_notes(
    obj: JsonObject, record: ExportRecord, context: RestoreContext
) -> Iterator[tuple[RestoreNote, str]]:
    _, namespace, name = record.key
    folder = results_folder(child(obj, "spec"), record.uid)
    if not folder:
        return
    if integer(child(obj, "status"), "succeeded") and not context.plan.selection.all_items:
        yield RestoreNote.RESULTS, f"{name}: {folder}"
    if context.namespaces.target_namespace(namespace) != namespace:
        yield RestoreNote.FOREIGN_RESULTS, name


def _array_items(
    obj: JsonObject, record: ExportRecord, context: RestoreContext
) -> tuple[JsonObject, _Notes]:
    if context.plan.selection.all_items:
        return unskipped_items(obj), []
    left, again = remaining_items(obj)
    detail = f"{record.key.name}: {again}"
    return left, [(RestoreNote.ITEMS_AGAIN, detail)] if again else []


def _job_spec(
    obj: JsonObject, record: ExportRecord, context: RestoreContext
) -> tuple[JsonObject, _Notes]:
    left = {
        name: value
        for name, value in child(obj, "spec").items()
        if name not in {"redrive", "rerun", "signals", "dependsOn"}
    }
    remarks: _Notes = [(RestoreNote.RERUN, record.key.name)] if record.rerun_requested else []
    if record.started and "notAfter" in left:
        del left["notAfter"]
        remarks.append((RestoreNote.DEADLINE, record.key.name))
    if "deadlineSeconds" in left:
        remarks.append((RestoreNote.NEW_DEADLINE, record.key.name))
    if child(obj, "spec").get("signals"):
        remarks.append((RestoreNote.SIGNALS, record.key.name))
    waits, unsatisfiable = _depends_on(obj, record, context)
    return {**left, **waits, "suspend": True}, [*remarks, *unsatisfiable]


def _depends_on(
    obj: JsonObject, record: ExportRecord, context: RestoreContext
) -> tuple[JsonObject, _Notes]:
    """Return what is left of `dependsOn`; what was let through waits for nothing any more."""
    if record.started or flag(child(obj, "status"), "admitted"):
        return {}, []
    namespace = record.key.namespace
    found = remaining_dependencies(items(child(obj, "spec"), "dependsOn"), namespace, context.plan)
    remarks = [
        (RestoreNote.UNSATISFIABLE, f"{record.key.name} for {name}") for name in found.unsatisfiable
    ]
    named = [_renamed(one, namespace, context) for one in found.remaining]
    return ({"dependsOn": named} if named else {}), remarks


def _renamed(dependency: JsonObject, namespace: str, context: RestoreContext) -> JsonObject:
    """Return a dependency with the new name of its job."""
    name = text(dependency, "name")
    return (
        {**dependency, "name": context.renamed_jobs.get((namespace, name), name)}
        if name
        else (dependency)
    )
