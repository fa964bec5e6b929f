"""Who may change what a queue or a schedule is like, and not only whether it is at work.

RBAC knows no fields. The gateway and administrators of jobs need `patch` to pause a queue and to
trigger a schedule; with that alone a schedule's jobs could be made others, and what is kept of the
finished ones could be set to nothing. A right to `patch` would be one to delete.
"""

from typing import Final

from asyncjob.names import CRON_JOBS, GROUP, JOBS, QUEUES, VERSION
from asyncjob.schema.laws.expressions import cel_list, cel_string
from asyncjob.schema.laws.law import Rule
from asyncjob.schema.policies.identity import may_on
from asyncjob.schema.policies.policy import AdmissionPolicy, PolicyTarget

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
_IS_CREATE: Final = "request.operation == 'CREATE'"

# A queue is there before its AsyncQueue: whoever creates this one changes it. The API server has
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
# A schedule's own runs come after it: what it keeps of them at first is its author's business.
_SAME_RETENTION: Final = (
    f"{_fields_by_kind(RETENTION_FIELDS)}.all(key, variables.new[?key] == variables.old[?key])"
)
_IS_NEW_CRON_JOB: Final = f"{_IS_CREATE} && !({_IS_QUEUE})"

_SETTINGS_KEEPING: Final = Rule(
    "settings.keeping",
    "How long finished jobs are kept (spec.retention of a queue, the history limits of a cron job) "
    "is decided by who may delete asyncjobs in the namespace; a cron job's first limits by who "
    "creates it.",
    f"({_IS_NEW_CRON_JOB}) || ({_SAME_RETENTION}) || {_MAY_DELETE_JOBS}",
    is_forbidden=True,
)
_SETTINGS_CHANGED: Final = Rule(
    "settings.changed",
    f"Of a queue's spec only {', '.join(PATCHABLE_FIELDS['AsyncQueue'])}, of a cron job's only "
    f"{', '.join(PATCHABLE_FIELDS['AsyncCronJob'])} are changed by who may patch it; the rest "
    "takes the "
    "right to update it, and so does a queue that is created with more than that.",
    f"({_IS_NEW_CRON_JOB}) || ({_ONLY_PATCHABLE_CHANGED}) || {_MAY_UPDATE}",
    is_forbidden=True,
)

SETTINGS_POLICY: Final = AdmissionPolicy(
    name=f"settings.{GROUP}",
    title="Who may change what a queue or a cron job is like.",
    targets=(PolicyTarget(GROUP, VERSION, (QUEUES, CRON_JOBS)),),
    operations=("CREATE", "UPDATE"),
    variables={
        "new": _NEW_SPEC,
        "old": f"{_IS_CREATE} ? ({_IS_QUEUE} ? dyn({_DEFAULT_QUEUE_SPEC}) : dyn({{}})) : "
        f"{_OLD_SPEC}",
    },
    rules=(_SETTINGS_KEEPING, _SETTINGS_CHANGED),
)
