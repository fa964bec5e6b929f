"""The one registry of names that leave this project: API group, labels, annotations.

Everything that ends up in a manifest, a selector or a lease is spelled here and nowhere else.
"""

import re
from typing import Final

GROUP: Final = "asyncjob.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

JOBS: Final = "asyncjobs"
QUEUES: Final = "asyncqueues"
CRON_JOBS: Final = "asynccronjobs"
ARRAYS: Final = "asyncarrays"

JOB_KIND: Final = "AsyncJob"
QUEUE_KIND: Final = "AsyncQueue"
CRON_JOB_KIND: Final = "AsyncCronJob"
ARRAY_KIND: Final = "AsyncArray"

DEFAULT_QUEUE: Final = "default"

OPERATE_VERB: Final = "operate"
"""Virtual verb on `asyncjobs`: who may do it passes the ownership policy (the operator)."""

VOUCH_VERB: Final = "vouch"
"""Virtual verb on `asyncjobs`: who may do it has asked itself whether the author of a job may read
the Secret or ConfigMap that its payload comes from (the gateway, on behalf of its callers)."""

READ_PAYLOAD_VERB: Final = "read-payload"
"""Virtual verb on `asyncjobs`: the gateway shows payloads and results to who has it."""

SIGNAL_VERB: Final = "signal"
"""Lets somebody send signals to a job; may be given for single jobs, by `resourceNames`."""

CONTROL_VERB: Final = "control"
"""Virtual verb on `asyncjobs`: the gateway cancels, reruns, redrives and so on for who has it."""

PARENT_LABEL: Final = f"{GROUP}/parent"
"""On a child job: the UID of the job that submitted it."""

PARENT_NAME_ANNOTATION: Final = f"{GROUP}/parent-name"
"""On a child job: the name of the job that submitted it, for people."""

CONTENT_ANNOTATION: Final = f"{GROUP}/submitted-content"
"""On a submitted job: hash of what it was submitted with, so that its submitter knows it again."""

DEDUPLICATION_LABEL: Final = f"{GROUP}/deduplication-id"
"""On a submitted job: digest of its deduplicationId, so that the newest of an id is found."""

IDEMPOTENCY_LABEL: Final = f"{GROUP}/idempotency-key"
"""On a submitted job with a deduplicationId: digest of its idempotencyKey, which its name does not
follow from, so that it is found all the same."""

CRON_JOB_LABEL: Final = f"{GROUP}/cron-job"
"""On a run of a cron job: name of its AsyncCronJob; a long one is cut and ends with a digest."""

CRON_JOB_UID_LABEL: Final = f"{GROUP}/cron-job-uid"
"""On a run of a cron job: UID of its AsyncCronJob."""

ARRAY_LABEL: Final = f"{GROUP}/array-uid"
"""On a chunk: UID of its AsyncArray."""

BACKFILL_LABEL: Final = f"{GROUP}/backfill"
"""On a run of a cron job that a backfill created: `true`."""

TRIGGER_ANNOTATION: Final = f"{GROUP}/trigger"
"""On a job that a cron job's trigger created: its number."""

SCHEDULED_TIME_ANNOTATION: Final = f"{GROUP}/scheduled-time"
"""On a run of a cron job: the time it is for, RFC 3339 in UTC; of a trigger when it was seen."""

SHARD_LABEL: Final = f"{GROUP}/shard"
"""On a job: a number from 0 to 63 from its name, by which workers share out what they watch."""

RESTORED_LABEL: Final = f"{GROUP}/restored"
"""On a job or cron job of `asyncjob restore`: `suspended`, or `unchanged` if it was so before."""

RESTORED_SUSPENDED: Final = "suspended"
RESTORED_UNCHANGED: Final = "unchanged"

RESTORED_FROM_ANNOTATION: Final = f"{GROUP}/restored-from"
"""On an object of `asyncjob restore`: the UID that it had when it was exported."""

COMPONENT_LABEL: Final = f"{GROUP}/component"
"""On pods and leases: which part they belong to (`worker`, `operator`, `gateway`)."""

QUEUE_LABEL: Final = f"{GROUP}/queue"
"""On worker pods and leases: the queue they serve."""

POD_UID_ANNOTATION: Final = f"{GROUP}/pod-uid"
"""On a worker's Lease: UID of its pod, so that a policy can bind the one to the other."""

WORKER_COMPONENT: Final = "worker"
OPERATOR_COMPONENT: Final = "operator"
GATEWAY_COMPONENT: Final = "gateway"

WORKER_ANNOTATION: Final = f"{GROUP}/worker"
"""On a worker's Lease: JSON of queue, slots and handler types."""

WORKER_ACCOUNT: Final = "asyncjob-worker"
"""ServiceAccount of workers, or how its name begins: a policy keeps these to their own Leases."""

WORKER_LEASE_PREFIX: Final = "asyncjob-worker-"
OPERATOR_LEASE: Final = "asyncjob-operator"

VERSION_TIMES_ANNOTATION: Final = f"{GROUP}/version-times"
"""On the operators' Lease: which resourceVersion was the newest when (`version_times`)."""

CAPABILITIES_ANNOTATION: Final = f"{GROUP}/capabilities"
"""On the operators' Lease: who wrote it, and what that leader can do. Workers park jobs only while
the leader itself has said that it wakes them."""

PARKS_CAPABILITY: Final = "parks"
"""Jobs that sleep are woken."""

SIGNALS_CAPABILITY: Final = "signals"
"""Jobs that wait for a signal are woken."""

CHILDREN_CAPABILITY: Final = "children"
"""Jobs that wait for child jobs are woken."""

ARRAYS_CAPABILITY: Final = "arrays"
"""Jobs that wait for arrays, as for child jobs, are woken."""


def announce_capabilities(leader: str, *, arrays: bool = True) -> str:
    """Return what a leader of this version writes into its Lease, under its own name.

    One that may not watch arrays wakes nobody from them.
    """
    known = (PARKS_CAPABILITY, SIGNALS_CAPABILITY, CHILDREN_CAPABILITY)
    return " ".join((leader, *known, *((ARRAYS_CAPABILITY,) if arrays else ())))


def read_capabilities(announced: str, leader: str) -> frozenset[str]:
    """Return what the leader has announced; nothing if another has, who led before."""
    name, *capabilities = announced.split() or [""]
    return frozenset(capabilities if leader and name == leader else ())


MAX_NAME_LENGTH: Final = 253
"""Characters that Kubernetes allows in the name of an object."""

NAME_PATTERN: Final = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"
"""Of the name of an object."""

_NAME: Final = re.compile(NAME_PATTERN.strip("^$"))

_NAMESPACE: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_NAMESPACE_MAX: Final = 63


def is_namespace(text: str) -> bool:
    """Return whether a namespace can be called so; what cannot must not get into a path."""
    return len(text) <= _NAMESPACE_MAX and _NAMESPACE.fullmatch(text) is not None


def is_object_name(text: str) -> bool:
    """Return whether an object can be called so; what cannot must not get into a path."""
    return len(text) <= MAX_NAME_LENGTH and _NAME.fullmatch(text) is not None


def collection_path(namespace: str | None, plural: str) -> str:
    """Return the API path of a collection of ours, in one namespace or in all."""
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{GROUP}/{VERSION}{scope}/{plural}"


def job_path(namespace: str, name: str) -> str:
    """Return the API path of one AsyncJob."""
    return f"{collection_path(namespace, JOBS)}/{name}"


def job_status_path(namespace: str, name: str) -> str:
    """Return the API path of the status subresource of one AsyncJob."""
    return f"{job_path(namespace, name)}/status"


def queue_path(namespace: str, name: str) -> str:
    """Return the API path of one AsyncQueue."""
    return f"{collection_path(namespace, QUEUES)}/{name}"


def queue_status_path(namespace: str, name: str) -> str:
    """Return the API path of the status subresource of one AsyncQueue."""
    return f"{queue_path(namespace, name)}/status"


def cron_job_path(namespace: str, name: str) -> str:
    """Return the API path of one AsyncCronJob."""
    return f"{collection_path(namespace, CRON_JOBS)}/{name}"


def cron_job_status_path(namespace: str, name: str) -> str:
    """Return the API path of the status subresource of one AsyncCronJob."""
    return f"{cron_job_path(namespace, name)}/status"


def child_path(namespace: str, kind: str, name: str) -> str:
    """Return the API path of one child: of an AsyncArray, or else of an AsyncJob."""
    return array_path(namespace, name) if kind == ARRAY_KIND else job_path(namespace, name)


def array_path(namespace: str, name: str) -> str:
    """Return the API path of one AsyncArray."""
    return f"{collection_path(namespace, ARRAYS)}/{name}"


def array_status_path(namespace: str, name: str) -> str:
    """Return the API path of the status subresource of one AsyncArray."""
    return f"{array_path(namespace, name)}/status"
