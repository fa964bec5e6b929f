"""Who may change what a queue or a schedule is like, and not only whether it is at work.

RBAC knows no fields. The gateway and administrators of jobs need `patch` to pause a queue and to
trigger a schedule; with that alone a schedule's jobs could be made others, and what is kept of the
finished ones could be set to nothing. A right to `patch` would be one to delete.
"""

from typing import Final

from asyncjob.names import CRON_JOBS, GROUP, JOBS, QUEUES, VERSION
from asyncjob.schema.laws.expressions import one_of, quote
from asyncjob.schema.laws.law import Law
from asyncjob.schema.policies.identity import may_on
from asyncjob.schema.policies.policy import Policy, Target

SWITCHES: Final = {
    "AsyncQueue": ("paused",),
    "AsyncCronJob": ("suspend", "trigger", "backfill"),
}
"""What who may `patch` changes, by kind."""

KEEPS: Final = {
    "AsyncQueue": ("retention",),
    "AsyncCronJob": ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
}
"""What decides how long finished jobs are kept, by kind."""

_QUEUE: Final = "object.kind == 'AsyncQueue'"
_CREATES: Final = "request.operation == 'CREATE'"

# A queue is there before its AsyncQueue: whoever creates this one changes it. The API server has
# filled in the only default by then.
_UNSET_QUEUE: Final = "{'unknownType': dyn('Wait')}"
_NEW: Final = "dyn(object).?spec.orValue({})"
_OLD: Final = "dyn(oldObject).?spec.orValue({})"
_DELETES_JOBS: Final = may_on(quote(JOBS), "delete", named=False)
_UPDATES: Final = may_on("request.resource.resource", "update")


def _listed(fields: dict[str, tuple[str, ...]]) -> str:
    queue, cron_job = (one_of(fields[kind]) for kind in ("AsyncQueue", "AsyncCronJob"))
    return f"({_QUEUE} ? {queue} : {cron_job})"


# Every field that is not listed, those that are added some day included.
_SAME_BUT_SWITCHES: Final = (
    f"variables.new.all(key, key in {_listed(SWITCHES)}"
    " || variables.old[?key] == optional.of(variables.new[key]))"
    f" && variables.old.all(key, key in {_listed(SWITCHES)} || key in variables.new)"
)
# A schedule's own runs come after it: what it keeps of them at first is its author's business.
_SAME_KEEPING: Final = f"{_listed(KEEPS)}.all(key, variables.new[?key] == variables.old[?key])"
_AUTHORS: Final = f"{_CREATES} && !({_QUEUE})"

_KEEPING: Final = Law(
    "settings.keeping",
    "How long finished jobs are kept (spec.retention of a queue, the history limits of a cron job) "
    "is decided by who may delete asyncjobs in the namespace; a cron job's first limits by who "
    "creates it.",
    f"({_AUTHORS}) || ({_SAME_KEEPING}) || {_DELETES_JOBS}",
    forbids=True,
)
_CHANGED: Final = Law(
    "settings.changed",
    f"Of a queue's spec only {', '.join(SWITCHES['AsyncQueue'])}, of a cron job's only "
    f"{', '.join(SWITCHES['AsyncCronJob'])} are changed by who may patch it; the rest takes the "
    "right to update it, and so does a queue that is created with more than that.",
    f"({_AUTHORS}) || ({_SAME_BUT_SWITCHES}) || {_UPDATES}",
    forbids=True,
)

SETTINGS: Final = Policy(
    name=f"settings.{GROUP}",
    title="Who may change what a queue or a cron job is like.",
    targets=(Target(GROUP, VERSION, (QUEUES, CRON_JOBS)),),
    operations=("CREATE", "UPDATE"),
    variables={
        "new": _NEW,
        "old": f"{_CREATES} ? ({_QUEUE} ? dyn({_UNSET_QUEUE}) : dyn({{}})) : {_OLD}",
    },
    laws=(_KEEPING, _CHANGED),
)
