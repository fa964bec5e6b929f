"""The rights that the gateway asks for, all in one table. They are RBAC verbs in a namespace.

`read-payload` and `control` are verbs of our own, that the API server itself knows nothing of.
A right is asked for as a whole: rules with `resourceNames` do not count, but for the Secrets and
ConfigMaps that a payload is taken from.
"""

from dataclasses import dataclass
from typing import Final

from asyncjob.names import CONTROL_VERB, CRON_JOBS, GROUP, JOBS, QUEUES, READ_PAYLOAD_VERB


@dataclass(frozen=True, slots=True)
class Right:
    """A verb on a resource; `name` where it is about one object only."""

    verb: str
    resource: str
    purpose: str
    group: str = GROUP
    name: str = ""

    def __str__(self) -> str:
        """Return it as `kubectl auth can-i` is asked."""
        where = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {where}" + (f"/{self.name}" if self.name else "")


SUBMIT_JOBS: Final = Right("create", JOBS, "submit jobs")
READ_JOBS: Final = Right("get", JOBS, "read a job, without its payload and result")
LIST_JOBS: Final = Right("list", JOBS, "list jobs")
WATCH_JOBS: Final = Right("watch", JOBS, "follow changes of jobs")
READ_PAYLOAD: Final = Right(
    READ_PAYLOAD_VERB, JOBS, "read payload, request, checkpoint and result of jobs"
)
CONTROL_JOBS: Final = Right(
    CONTROL_VERB, JOBS, "cancel, suspend, resume, rerun, redrive and dismiss jobs, set priorities"
)
READ_QUEUES: Final = Right("get", QUEUES, "read a queue")
LIST_QUEUES: Final = Right("list", QUEUES, "list queues and workers")
CONTROL_QUEUES: Final = Right("patch", QUEUES, "pause and resume queues")
READ_CRON_JOBS: Final = Right("get", CRON_JOBS, "read a cron job")
LIST_CRON_JOBS: Final = Right("list", CRON_JOBS, "list cron jobs")
CONTROL_CRON_JOBS: Final = Right(
    "patch", CRON_JOBS, "trigger, backfill, suspend and resume cron jobs"
)

RIGHTS: Final = (
    *(SUBMIT_JOBS, READ_JOBS, LIST_JOBS, WATCH_JOBS, READ_PAYLOAD, CONTROL_JOBS),
    *(READ_QUEUES, LIST_QUEUES, CONTROL_QUEUES),
    *(READ_CRON_JOBS, LIST_CRON_JOBS, CONTROL_CRON_JOBS),
)


def read_source(resource: str, name: str) -> Right:
    """Return the right to read a Secret or ConfigMap (`secrets`, `configmaps`)."""
    return Right("get", resource, "use it as payload", group="", name=name)
