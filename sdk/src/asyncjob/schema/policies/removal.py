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
from asyncjob.schema.laws.expressions import all_of, one_of
from asyncjob.schema.laws.law import Law
from asyncjob.schema.policies.identity import may_on
from asyncjob.schema.policies.policy import Policy, Target

_RUN_LABELS: Final = (CRON_JOB_LABEL, CRON_JOB_UID_LABEL, BACKFILL_LABEL)
_RUN_ANNOTATIONS: Final = (SCHEDULED_TIME_ANNOTATION, TRIGGER_ANNOTATION)

_DELETES: Final = may_on("request.resource.resource", "delete")
_FINALIZES: Final = may_on("request.resource.resource", "update", "finalizers")

_UPDATES_STATUS: Final = may_on("request.resource.resource", "update", "status")

_CREATES: Final = "request.operation == 'CREATE'"
_IS_JOB: Final = "object.kind == 'AsyncJob'"


def _same(field: str) -> str:
    return f"object.metadata.?{field} == oldObject.metadata.?{field}"


def _same_key(field: str, key: str) -> str:
    path = f"metadata.?{field}[?'{key}']"
    return f"object.{path} == oldObject.{path}"


def _none_of(field: str, keys: tuple[str, ...]) -> str:
    held = f"object.metadata.{field}"
    return f"!has({held}) || !{one_of(keys)}.exists(key, key in {held})"


def _reports(of: str) -> str:
    """Return what managedFields has of the status."""
    entries = f"{of}.metadata.?managedFields.orValue([])"
    return f"{entries}.filter(entry, entry.?subresource.orValue('') == 'status')"


_SAME_OWNERS: Final = f"{_CREATES} || {_same('ownerReferences')}"
_SAME_FINALIZERS: Final = f"{_CREATES} ? !has(object.metadata.finalizers) : {_same('finalizers')}"
_SAME_KIN: Final = (
    f"!({_IS_JOB}) || ({_CREATES} ? "
    + all_of((_none_of("labels", _RUN_LABELS), _none_of("annotations", _RUN_ANNOTATIONS)))
    + " : "
    + all_of(
        (
            *(_same_key("labels", key) for key in (*_RUN_LABELS, PARENT_LABEL)),
            *(_same_key("annotations", key) for key in _RUN_ANNOTATIONS),
        )
    )
    + ")"
)
_SAME_REPORTS: Final = f"{_CREATES} || {_reports('object')} == {_reports('oldObject')}"
_TRACKS: Final = f"!({_CREATES}) || has(object.metadata.managedFields)"

_OWNERS: Final = Law(
    "removal.owners",
    "The owner references of a job, queue or cron job are changed only by who may delete it.",
    f"({_SAME_OWNERS}) || {_DELETES}",
    forbids=True,
)
_FINALIZERS: Final = Law(
    "removal.finalizers",
    "The finalizers of a job, queue or cron job are set and changed only by who may `update` "
    f"{JOBS}/finalizers, {QUEUES}/finalizers or {CRON_JOBS}/finalizers; leave them as they are.",
    f"({_SAME_FINALIZERS}) || {_FINALIZES}",
    forbids=True,
)
_KIN: Final = Law(
    "removal.kin",
    f"The labels {', '.join(_RUN_LABELS)} and the annotations {', '.join(_RUN_ANNOTATIONS)} make a "
    f"job count as a run of a schedule: who may delete jobs sets and changes them. {PARENT_LABEL} "
    "is set at creation, and changed likewise.",
    f"({_SAME_KIN}) || {_DELETES}",
    forbids=True,
)
_REPORTS: Final = Law(
    "removal.reports",
    "What managedFields has of the status is changed through the object itself only by who may "
    "`update` its status, not only patch it; leave managedFields out of the change.",
    f"({_SAME_REPORTS}) || {_UPDATES_STATUS}",
    forbids=True,
)
_TRACKED: Final = Law(
    "removal.tracked",
    "An object is created so that the API server tracks its managedFields; leave these out of what "
    "is created.",
    _TRACKS,
)

REMOVAL: Final = Policy(
    name=f"removal.{GROUP}",
    title="Who may have an object removed, or kept, through its metadata.",
    targets=(Target(GROUP, VERSION, (JOBS, QUEUES, CRON_JOBS)),),
    operations=("CREATE", "UPDATE"),
    conditions={
        "changes": "!("
        + all_of((_SAME_FINALIZERS, _TRACKS, _SAME_KIN, _SAME_OWNERS, _SAME_REPORTS))
        + ")"
    },
    laws=(_OWNERS, _FINALIZERS, _KIN, _REPORTS, _TRACKED),
)
