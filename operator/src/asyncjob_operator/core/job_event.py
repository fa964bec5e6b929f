"""Kubernetes Events about jobs and namespaces: what a person must see."""

from dataclasses import dataclass
from typing import Final

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.view import JobView
from asyncjob.names import API_VERSION, JOB_KIND, QUEUE_KIND

REPORTER: Final = "asyncjob-operator"
MAX_NOTE: Final = 1024
HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell about one object, a job unless said otherwise.

    The same reason about the same object is not told again for `rest` seconds.
    """

    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    warning: bool = True
    api_version: str = API_VERSION
    kind: str = JOB_KIND
    rest: float = 0.0

    @property
    def subject(self) -> tuple[str, str, str, str]:
        """Return what it is about: kind, namespace, name and reason."""
        return self.kind, self.namespace, self.name, self.reason


def notice(job: JobView, reason: str, message: str) -> Notice:
    """Return a warning about the job."""
    return Notice(job.namespace, job.name, job.uid, reason, message)


def namespace_notice(namespace: str, reason: str, message: str) -> Notice:
    """Return a warning about a namespace, told once an hour at most."""
    return Notice(
        namespace, namespace, "", reason, message, api_version="v1", kind="Namespace", rest=HOUR
    )


def queue_notice(namespace: str, queue: str, reason: str, message: str) -> Notice:
    """Return a warning about a queue, with an AsyncQueue or not; told once an hour at most."""
    return Notice(namespace, queue, "", reason, message, kind=QUEUE_KIND, rest=HOUR)


def event_body(told: Notice, name: str, reporter: str, time: str) -> JsonObject:
    """Return the Event object."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": told.namespace},
        "involvedObject": {
            "apiVersion": told.api_version,
            "kind": told.kind,
            "namespace": told.namespace,
            "name": told.name,
            **({"uid": told.uid} if told.uid else {}),
        },
        "type": "Warning" if told.warning else "Normal",
        "reason": told.reason,
        "message": told.message[:MAX_NOTE],
        "count": 1,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "source": {"component": REPORTER},
        "reportingComponent": REPORTER,
        "reportingInstance": reporter,
    }
