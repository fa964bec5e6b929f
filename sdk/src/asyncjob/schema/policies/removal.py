"""Who may have an object removed, or keep it from being removed, by what its metadata says.

The garbage collector removes what names an owner that is not there, a finalizer keeps what is to
go, the history limits of a schedule count what bears its labels, and retention goes by the time
that managedFields has of the last report. So a right to patch would be one to delete, and retention
could be stopped by anyone who may set a wish. All other labels and annotations stay free.

Owners at creation are free: who creates an object may have it go with another of theirs.
"""

from typing import Final

from asyncjob.names import (
    BACKFILL_LABEL,
    CRON_JOB_LABEL,
    CRON_JOB_UID_LABEL,
    CRON_JOBS,
    GROUP,
    JOBS,
    PARENT_LABEL,
    QUEUES,
    SCHEDULED_TIME_ANNOTATION,
    TRIGGER_ANNOTATION,
    VERSION,
)
from asyncjob.schema.laws.expressions import cel_and, cel_list
from asyncjob.schema.laws.law import Rule
from asyncjob.schema.policies.identity import may_on
from asyncjob.schema.policies.policy import AdmissionPolicy, PolicyTarget

_RUN_LABELS: Final = (CRON_JOB_LABEL, CRON_JOB_UID_LABEL, BACKFILL_LABEL)
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
_HAS_MANAGED_FIELDS: Final = f"!({_IS_CREATE}) || has(object.metadata.managedFields)"

_REMOVAL_OWNERS: Final = Rule(
    "removal.owners",
    "The owner references of a job, queue or cron job are changed only by who may delete it.",
    f"({_SAME_OWNERS}) || {_MAY_DELETE}",
    is_forbidden=True,
)
_REMOVAL_FINALIZERS: Final = Rule(
    "removal.finalizers",
    "The finalizers of a job, queue or cron job are set and changed only by who may `update` "
    f"{JOBS}/finalizers, {QUEUES}/finalizers or {CRON_JOBS}/finalizers; leave them as they are.",
    f"({_SAME_FINALIZERS}) || {_MAY_UPDATE_FINALIZERS}",
    is_forbidden=True,
)
_REMOVAL_KIN: Final = Rule(
    "removal.kin",
    f"The labels {', '.join(_RUN_LABELS)} and the annotations {', '.join(_RUN_ANNOTATIONS)} make a "
    f"job count as a run of a schedule: who may delete jobs sets and changes them. {PARENT_LABEL} "
    "is set at creation, and changed likewise.",
    f"({_SAME_RUN_METADATA}) || {_MAY_DELETE}",
    is_forbidden=True,
)
_REMOVAL_REPORTS: Final = Rule(
    "removal.reports",
    "What managedFields has of the status is changed through the object itself only by who may "
    "`update` its status, not only patch it; leave managedFields out of the change.",
    f"({_SAME_STATUS_MANAGED_FIELDS}) || {_MAY_UPDATE_STATUS}",
    is_forbidden=True,
)
_REMOVAL_TRACKED: Final = Rule(
    "removal.tracked",
    "An object is created so that the API server tracks its managedFields; leave these out of what "
    "is created.",
    _HAS_MANAGED_FIELDS,
)

REMOVAL_POLICY: Final = AdmissionPolicy(
    name=f"removal.{GROUP}",
    title="Who may have an object removed, or kept, through its metadata.",
    targets=(PolicyTarget(GROUP, VERSION, (JOBS, QUEUES, CRON_JOBS)),),
    operations=("CREATE", "UPDATE"),
    conditions={
        "changes": "!("
        + cel_and(
            (
                _SAME_FINALIZERS,
                _HAS_MANAGED_FIELDS,
                _SAME_RUN_METADATA,
                _SAME_OWNERS,
                _SAME_STATUS_MANAGED_FIELDS,
            )
        )
        + ")"
    },
    rules=(_REMOVAL_OWNERS, _REMOVAL_FINALIZERS, _REMOVAL_KIN, _REMOVAL_REPORTS, _REMOVAL_TRACKED),
)
