"""Kubernetes Events about jobs, queues and namespaces that a person should see."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.job_view import JobView
from asyncjob.names import API_VERSION, JOB_KIND, QUEUE_KIND

COMPONENT: Final = "asyncjob-operator"
MAX_MESSAGE_LENGTH: Final = 1024
HOUR: Final = 3600.0


class EventReason(StrEnum):
    """Reasons of Events that are none of a job or a cron job; `asyncjob explain` knows them."""

    DEAD_LETTER = "DeadLetter"
    """A dead letter without a reason of its own."""

    REDRIVE_REFUSED = "RedriveRefused"
    RERUN_REFUSED = "RerunRefused"
    ARRAY_FAILED = "ArrayFailed"
    WRITE_REFUSED = "WriteRefused"
    NO_WORKERS = "NoWorkers"
    RECOVERY_STORM = "RecoveryStorm"
    STORE_NEAR_LIMIT = "StoreNearLimit"
    EVENTS_LEFT_OUT = "EventsLeftOut"


@dataclass(frozen=True, slots=True)
class KubernetesEvent:
    """A warning about one object, by default a job."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    api_version: str = API_VERSION
    kind: str = JOB_KIND
    min_interval: float = 0.0
    """Seconds before an Event with the same reason about the same object is posted again."""

    @property
    def dedup_key(self) -> tuple[str, str, str, str]:
        """Return kind, namespace and name of the object, and the reason."""
        return self.kind, self.namespace, self.name, self.reason


def job_event(job: JobView, reason: str, message: str) -> KubernetesEvent:
    """Return a warning about the job."""
    return KubernetesEvent(job.namespace, job.name, job.uid, reason, message)


def namespace_event(namespace: str, reason: str, message: str) -> KubernetesEvent:
    """Return a warning about a namespace, posted once an hour at most."""
    return KubernetesEvent(
        namespace,
        namespace,
        "",
        reason,
        message,
        api_version="v1",
        kind="Namespace",
        min_interval=HOUR,
    )


def queue_event(namespace: str, queue: str, reason: str, message: str) -> KubernetesEvent:
    """Return a warning about a queue, with an AsyncQueue or not, posted once an hour at most."""
    return KubernetesEvent(
        namespace, queue, "", reason, message, kind=QUEUE_KIND, min_interval=HOUR
    )


def event_body(event: KubernetesEvent, name: str, instance: str, time: str) -> JsonObject:
    """Return the Event object to create."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": event.namespace},
        "involvedObject": {
            "apiVersion": event.api_version,
            "kind": event.kind,
            "namespace": event.namespace,
            "name": event.name,
            **({"uid": event.uid} if event.uid else {}),
        },
        "type": "Warning",
        "reason": event.reason,
        "message": event.message[:MAX_MESSAGE_LENGTH],
        "count": 1,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": instance,
    }
