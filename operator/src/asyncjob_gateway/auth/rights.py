"""The rights that the gateway asks for, all in one table. They are RBAC verbs in a namespace.

`read-payload`, `control` and `signal` are verbs of our own: the API server itself asks for none of
them, but for its policy of signals. A right is asked for as a whole: rules with `resourceNames` do
not count, but for the Secrets and ConfigMaps that a payload is taken from, and for the job that a
signal is sent to.
"""

from dataclasses import dataclass
from typing import Final

from asyncjob.names import (
    ARRAYS,
    CONTROL_VERB,
    CRON_JOBS,
    GROUP,
    JOBS,
    QUEUES,
    READ_PAYLOAD_VERB,
    SIGNAL_VERB,
)


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
    READ_PAYLOAD_VERB,
    JOBS,
    "read payload, request, checkpoint and result of jobs, payload and items of arrays",
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
SUBMIT_ARRAYS: Final = Right("create", ARRAYS, "submit arrays")
READ_ARRAYS: Final = Right(
    "get", ARRAYS, "read an array and its failed items, without its payload and items"
)
LIST_ARRAYS: Final = Right("list", ARRAYS, "list arrays")
CONTROL_ARRAYS: Final = Right("patch", ARRAYS, "cancel, suspend, resume and redrive arrays")

RIGHTS: Final = (
    *(SUBMIT_JOBS, READ_JOBS, LIST_JOBS, WATCH_JOBS, READ_PAYLOAD, CONTROL_JOBS),
    *(READ_QUEUES, LIST_QUEUES, CONTROL_QUEUES),
    *(READ_CRON_JOBS, LIST_CRON_JOBS, CONTROL_CRON_JOBS),
    *(SUBMIT_ARRAYS, READ_ARRAYS, LIST_ARRAYS, CONTROL_ARRAYS),
)


def signal_job(job_id: str) -> Right:
    """Return the right to send a job signals, which may be given for single jobs."""
    return Right(SIGNAL_VERB, JOBS, "send it signals", name=job_id)


def read_source(resource: str, name: str) -> Right:
    """Return the right to read a Secret or ConfigMap (`secrets`, `configmaps`)."""
    return Right("get", resource, "use it as payload", group="", name=name)
