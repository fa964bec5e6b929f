"""Policies that close gaps of RBAC: metadata, settings, payload sources and Leases.

Removal: the garbage collector removes objects whose owner is missing, a finalizer keeps an object,
the history limits of a cron job count what bears its labels, what bears the label of an array is
deleted unless the array lists it, and retention goes by the time of the
last report in managedFields, where they are. A right to patch would so be a right to delete.
All other labels and annotations stay free, and so do the owners of a new object.

Settings: RBAC knows no fields. `patch` is needed to pause a queue and to trigger a cron job; it
must not be enough to change what a cron job runs or how long finished jobs are kept.

Payload sources: the worker reads a Secret or ConfigMap on behalf of the job's author, so the author
must have the right to read it. The operator creates runs and reruns after their author has been
checked here; the gateway checks its callers itself and vouches for them, and so needs no right to
read Secrets.

Leases: RBAC knows no name prefixes, and no names at all for `create`, so it lets a worker write any
Lease of its namespace. Workers are told by the name of their ServiceAccount, because the condition
is evaluated for every Lease of the cluster, and other leaders must not depend on a call to the
authorizer. Deleting is left to RBAC: namespace controller and garbage collector delete everywhere
and may not `operate`; a Lease they were refused would keep its namespace from going away.
"""

from typing import Final

from asyncjob.names import (
    ARRAY_LABEL,
    ARRAYS,
    BACKFILL_LABEL,
    CRON_JOB_LABEL,
    CRON_JOB_UID_LABEL,
    CRON_JOBS,
    GROUP,
    JOBS,
    OPERATOR_LEASE,
    PARENT_LABEL,
    POD_UID_ANNOTATION,
    QUEUES,
    SCHEDULED_TIME_ANNOTATION,
    TRIGGER_ANNOTATION,
    VERSION,
    WORKER_ACCOUNT,
    WORKER_LEASE_PREFIX,
)
from asyncjob.rules.policy import (
    IS_WORKER,
    MAY_OPERATE,
    MAY_VOUCH,
    REQUEST_POD,
    REQUEST_POD_UID,
    AdmissionPolicy,
    PolicyTarget,
    may_on,
)
from asyncjob.rules.rule import Rule, cel_and, cel_list, cel_string

_RUN_LABELS: Final = (CRON_JOB_LABEL, CRON_JOB_UID_LABEL, BACKFILL_LABEL, ARRAY_LABEL)
_RUN_ANNOTATIONS: Final = (SCHEDULED_TIME_ANNOTATION, TRIGGER_ANNOTATION)

_MAY_DELETE: Final = may_on("request.resource.resource", "delete")
_MAY_UPDATE_FINALIZERS: Final = may_on("request.resource.resource", "update", "finalizers")

_MAY_UPDATE_STATUS: Final = may_on("request.resource.resource", "update", "status")

_IS_CREATE: Final = "request.operation == 'CREATE'"
_IS_JOB: Final = "object.kind == 'AsyncJob'"


def _same_metadata(field: str) -> str:
    return f"object.metadata.?{field} == oldObject.metadata.?{field}"


def _same_metadata_key(field: str, key: str) -> str:
    path = f"metadata.?{field}[?'{key}']"
    return f"object.{path} == oldObject.{path}"


def _none_of(field: str, keys: tuple[str, ...]) -> str:
    held = f"object.metadata.{field}"
    return f"!has({held}) || !{cel_list(keys)}.exists(key, key in {held})"


def _status_managed_fields(obj: str) -> str:
    """Return what managedFields has of the status."""
    entries = f"{obj}.metadata.?managedFields.orValue([])"
    return f"{entries}.filter(entry, entry.?subresource.orValue('') == 'status')"


_SAME_OWNERS: Final = f"{_IS_CREATE} || {_same_metadata('ownerReferences')}"
_SAME_FINALIZERS: Final = (
    f"{_IS_CREATE} ? !has(object.metadata.finalizers) : {_same_metadata('finalizers')}"
)
_SAME_RUN_METADATA: Final = (
    f"!({_IS_JOB}) || ({_IS_CREATE} ? "
    + cel_and((_none_of("labels", _RUN_LABELS), _none_of("annotations", _RUN_ANNOTATIONS)))
    + " : "
    + cel_and(
        (
            *(_same_metadata_key("labels", key) for key in (*_RUN_LABELS, PARENT_LABEL)),
            *(_same_metadata_key("annotations", key) for key in _RUN_ANNOTATIONS),
        )
    )
    + ")"
)
_SAME_STATUS_MANAGED_FIELDS: Final = (
    f"{_IS_CREATE} || {_status_managed_fields('object')} == {_status_managed_fields('oldObject')}"
)

_REMOVAL_OWNERS: Final = Rule(
    "removal.owners",
    "Changing the owner references of a job, queue, cron job or array requires permission to "
    "delete it.",
    f"({_SAME_OWNERS}) || {_MAY_DELETE}",
    is_forbidden=True,
)
_REMOVAL_FINALIZERS: Final = Rule(
    "removal.finalizers",
    "Changing the finalizers of a job, queue, cron job or array requires permission to `update` "
    f"{JOBS}/finalizers, {QUEUES}/finalizers, {CRON_JOBS}/finalizers or {ARRAYS}/finalizers; leave "
    "them unchanged.",
    f"({_SAME_FINALIZERS}) || {_MAY_UPDATE_FINALIZERS}",
    is_forbidden=True,
)
_REMOVAL_RUN_METADATA: Final = Rule(
    "removal.run-metadata",
    f"The labels {', '.join(_RUN_LABELS)} and the annotations {', '.join(_RUN_ANNOTATIONS)} mark a "
    "job as a run of a cron job or a chunk of an array: setting or changing them requires "
    "permission to delete jobs. "
    f"{PARENT_LABEL} can be set at creation; changing it requires the same permission.",
    f"({_SAME_RUN_METADATA}) || {_MAY_DELETE}",
    is_forbidden=True,
)
_REMOVAL_REPORTS: Final = Rule(
    "removal.reports",
    "Changing the managedFields of the status through the object itself requires permission to "
    "`update` its status, not only to patch it; leave managedFields out of the change.",
    f"({_SAME_STATUS_MANAGED_FIELDS}) || {_MAY_UPDATE_STATUS}",
    is_forbidden=True,
)

REMOVAL_POLICY: Final = AdmissionPolicy(
    name=f"removal.{GROUP}",
    title="Who may cause or prevent the deletion of an object through its metadata.",
    targets=(PolicyTarget(GROUP, VERSION, (JOBS, QUEUES, CRON_JOBS, ARRAYS)),),
    operations=("CREATE", "UPDATE"),
    conditions={
        "changes": "!("
        + cel_and(
            (
                _SAME_FINALIZERS,
                _SAME_RUN_METADATA,
                _SAME_OWNERS,
                _SAME_STATUS_MANAGED_FIELDS,
            )
        )
        + ")"
    },
    rules=(
        _REMOVAL_OWNERS,
        _REMOVAL_FINALIZERS,
        _REMOVAL_RUN_METADATA,
        _REMOVAL_REPORTS,
    ),
)


PATCHABLE_FIELDS: Final = {
    "AsyncQueue": ("paused",),
    "AsyncCronJob": ("suspend", "trigger", "backfill"),
}
"""What who may `patch` changes, by kind."""

RETENTION_FIELDS: Final = {
    "AsyncQueue": ("retention",),
    "AsyncCronJob": ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
}
"""What decides how long finished jobs are kept, by kind."""

_IS_QUEUE: Final = "object.kind == 'AsyncQueue'"


# A queue is there before its AsyncQueue: who creates this one changes it. The API server has
# filled in the only default by then.
_DEFAULT_QUEUE_SPEC: Final = "{'unknownType': dyn('Wait')}"
_NEW_SPEC: Final = "dyn(object).?spec.orValue({})"
_OLD_SPEC: Final = "dyn(oldObject).?spec.orValue({})"
_MAY_DELETE_JOBS: Final = may_on(cel_string(JOBS), "delete", named=False)
_MAY_UPDATE: Final = may_on("request.resource.resource", "update")


def _fields_by_kind(fields: dict[str, tuple[str, ...]]) -> str:
    queue, cron_job = (cel_list(fields[kind]) for kind in ("AsyncQueue", "AsyncCronJob"))
    return f"({_IS_QUEUE} ? {queue} : {cron_job})"


# Every field that is not listed, those that are added some day included.
_ONLY_PATCHABLE_CHANGED: Final = (
    f"variables.new.all(key, key in {_fields_by_kind(PATCHABLE_FIELDS)}"
    " || variables.old[?key] == optional.of(variables.new[key]))"
    f" && variables.old.all(key, key in {_fields_by_kind(PATCHABLE_FIELDS)} || key in "
    "variables.new)"
)
# A cron job's own runs come after it: what it keeps of them at first is its author's business.
_SAME_RETENTION: Final = (
    f"{_fields_by_kind(RETENTION_FIELDS)}.all(key, variables.new[?key] == variables.old[?key])"
)
_IS_NEW_CRON_JOB: Final = f"{_IS_CREATE} && !({_IS_QUEUE})"

_SETTINGS_KEEPING: Final = Rule(
    "settings.keeping",
    "Changing how long finished jobs are kept (spec.retention of a queue, the history limits of an "
    "existing cron job) requires permission to delete asyncjobs in the namespace.",
    f"({_IS_NEW_CRON_JOB}) || ({_SAME_RETENTION}) || {_MAY_DELETE_JOBS}",
    is_forbidden=True,
)
_SETTINGS_CHANGED: Final = Rule(
    "settings.changed",
    "With permission to patch, only these fields of the spec can be changed: of a queue "
    f"{', '.join(PATCHABLE_FIELDS['AsyncQueue'])}, of a cron job "
    f"{', '.join(PATCHABLE_FIELDS['AsyncCronJob'])}. Other fields, also of a new queue, require "
    "permission to update.",
    f"({_IS_NEW_CRON_JOB}) || ({_ONLY_PATCHABLE_CHANGED}) || {_MAY_UPDATE}",
    is_forbidden=True,
)

SETTINGS_POLICY: Final = AdmissionPolicy(
    name=f"settings.{GROUP}",
    title="Who may change the settings of a queue or a cron job.",
    targets=(PolicyTarget(GROUP, VERSION, (QUEUES, CRON_JOBS)),),
    operations=("CREATE", "UPDATE"),
    variables={
        "new": _NEW_SPEC,
        "old": f"{_IS_CREATE} ? ({_IS_QUEUE} ? dyn({_DEFAULT_QUEUE_SPEC}) : dyn({{}})) : "
        f"{_OLD_SPEC}",
    },
    rules=(_SETTINGS_KEEPING, _SETTINGS_CHANGED),
)


def _may_get_rule(field: str, resource: str) -> Rule:
    return Rule(
        f"source.{resource}",
        f"A job that reads its payload from {resource} requires permission to get the object, or "
        "to `operate` on, or `vouch` for, asyncjobs.",
        f"!variables.asks || !has(variables.source.{field}) || authorizer.group('')"
        f".resource('{resource}').namespace(request.namespace)"
        f".name(variables.source.{field}.name).check('get').allowed()"
        " || variables.trusted",
        f"variables.path + '.{field}: ' + request.userInfo.username + ' may not get {resource} '"
        f" + variables.source.?{field}.?name.orValue('')",
        is_forbidden=True,
    )


_SOURCE_PAYLOAD_ONCE: Final = Rule(
    "source.payload-once",
    "payload and payloadFrom exclude each other.",
    "request.operation != 'CREATE' && variables.is_job"
    " || dyn(variables.template).?payload.orValue(null) == null",
    "variables.path + ': excludes payload'",
)

PAYLOAD_SOURCE_POLICY: Final = AdmissionPolicy(
    name=f"payload-source.{GROUP}",
    title="Who may create jobs that read their payload from Secrets and ConfigMaps.",
    targets=(PolicyTarget(GROUP, VERSION, (JOBS, CRON_JOBS)),),
    operations=("CREATE", "UPDATE"),
    conditions={
        "has-source": f"({_IS_JOB} ? has(spec.payloadFrom) : "
        "has(spec.jobTemplate.spec.payloadFrom))",
    },
    variables={
        "is_job": _IS_JOB,
        "path": f"({_IS_JOB} ? 'spec' : 'spec.jobTemplate.spec') + '.payloadFrom'",
        "template": f"{_IS_JOB} ? spec : spec.jobTemplate.spec",
        "source": "variables.template.payloadFrom",
        # Apart from the rules: asking the authorizer three times exceeds an expression's budget.
        "trusted": f"{MAY_OPERATE} || {MAY_VOUCH}",
        # Suspending a cron job, or cancelling a job, takes no right to what it reads.
        "asks": "request.operation == 'CREATE' || (variables.is_job"
        " ? spec.?rerun.orValue(0) > spec_was.?rerun.orValue(0)"
        " : spec.jobTemplate != spec_was.jobTemplate"
        " || spec.?trigger.orValue(0) > spec_was.?trigger.orValue(0)"
        " || (has(spec.backfill) && spec.?backfill != spec_was.?backfill))",
    },
    rules=(
        _SOURCE_PAYLOAD_ONCE,
        _may_get_rule("secretKeyRef", "secrets"),
        _may_get_rule("configMapKeyRef", "configmaps"),
    ),
)


_LEASE_POD_UID: Final = f"object.metadata.?annotations[?'{POD_UID_ANNOTATION}'].orValue('')"
_IS_OUR_LEASE: Final = (
    f"object.metadata.name == '{OPERATOR_LEASE}'"
    f" || object.metadata.name.startsWith('{WORKER_LEASE_PREFIX}')"
)

_WORKER_LEASE_OWN: Final = Rule(
    "worker-lease.own",
    f"The Lease {WORKER_LEASE_PREFIX}POD can be written only by that pod, with its UID in the "
    f"annotation {POD_UID_ANNOTATION}, or with the permission `operate` on asyncjobs.",
    f"!variables.name.startsWith('{WORKER_LEASE_PREFIX}') || (variables.pod != ''"
    f" && variables.uid != '' && variables.name == '{WORKER_LEASE_PREFIX}' + variables.pod"
    f" && {_LEASE_POD_UID} == variables.uid) || {MAY_OPERATE}",
    "'lease ' + variables.name + ' with pod UID ' + "
    f"{_LEASE_POD_UID} + ' is not that of ' + (variables.pod == '' ? request.userInfo.username"
    " : 'pod ' + variables.pod + ' (' + variables.uid + ')')",
    is_forbidden=True,
)
_WORKER_LEASE_ELECTION: Final = Rule(
    "worker-lease.election",
    f"The Lease {OPERATOR_LEASE}, used for the operator's leader election, can be written only "
    "with the permission `operate` on asyncjobs.",
    f"variables.name != '{OPERATOR_LEASE}' || {MAY_OPERATE}",
    is_forbidden=True,
)
_WORKER_LEASE_NO_OTHER: Final = Rule(
    "worker-lease.no-other",
    f"A ServiceAccount {WORKER_ACCOUNT} or {WORKER_ACCOUNT}-… can write only the Lease of its "
    "worker, unless it has the permission `operate` on asyncjobs.",
    f"{_IS_OUR_LEASE} || !{IS_WORKER} || {MAY_OPERATE}",
    "'lease ' + variables.name + ' is not for workers, and ' + request.userInfo.username"
    " + ' is one'",
    is_forbidden=True,
)

WORKER_LEASE_POLICY: Final = AdmissionPolicy(
    name=f"worker-lease.{GROUP}",
    title="Who may write the Leases of workers and operators.",
    targets=(PolicyTarget("coordination.k8s.io", "v1", ("leases",)),),
    operations=("CREATE", "UPDATE"),
    conditions={
        "is-ours-or-a-worker-writes": f"{_IS_OUR_LEASE} || {IS_WORKER}",
    },
    variables={"name": "object.metadata.name", "pod": REQUEST_POD, "uid": REQUEST_POD_UID},
    rules=(_WORKER_LEASE_OWN, _WORKER_LEASE_ELECTION, _WORKER_LEASE_NO_OTHER),
)
