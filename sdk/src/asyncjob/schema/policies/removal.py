"""Who may have an object removed, or keep it from being removed, by changing its metadata.

The garbage collector removes what names an owner that is not there, and a finalizer keeps what is
to go. So a right to patch would be one to delete, and retention could be stopped by anyone who may
set a wish. Labels and annotations stay free.
"""

from typing import Final

from asyncjob.names import CRON_JOBS, GROUP, JOBS, QUEUES, VERSION
from asyncjob.schema.laws.law import Law
from asyncjob.schema.policies.policy import Policy, Target

_DELETES: Final = (
    f"authorizer.group('{GROUP}').resource(request.resource.resource)"
    ".namespace(request.namespace).name(object.metadata.name).check('delete').allowed()"
)


def _same(field: str) -> str:
    return f"object.metadata.?{field} == oldObject.metadata.?{field}"


_OWNERS: Final = Law(
    "removal.owners",
    "The owner references of a job, queue or cron job are changed only by who may delete it.",
    f"{_same('ownerReferences')} || {_DELETES}",
    forbids=True,
)
_FINALIZERS: Final = Law(
    "removal.finalizers",
    "The finalizers of a job, queue or cron job are changed only by who may delete it.",
    f"{_same('finalizers')} || {_DELETES}",
    forbids=True,
)

REMOVAL: Final = Policy(
    name=f"removal.{GROUP}",
    title="Who may have an object removed, or kept, through its metadata.",
    targets=(Target(GROUP, VERSION, (JOBS, QUEUES, CRON_JOBS)),),
    operations=("UPDATE",),
    conditions={"changes": f"!({_same('ownerReferences')} && {_same('finalizers')})"},
    laws=(_OWNERS, _FINALIZERS),
)
