"""Kubernetes Events about jobs: what a person must see."""

from dataclasses import dataclass
from typing import Final

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.view import JobView
from asyncjob.names import API_VERSION, JOB_KIND

REPORTER: Final = "asyncjob-operator"
MAX_NOTE: Final = 1024


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell about one job; a second of the same reason and job is not told again."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    warning: bool = True


def notice(job: JobView, reason: str, message: str) -> Notice:
    """Return a warning about the job."""
    return Notice(job.namespace, job.name, job.uid, reason, message)


def event_body(told: Notice, name: str, reporter: str, time: str) -> JsonObject:
    """Return the Event object."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": told.namespace},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": JOB_KIND,
            "namespace": told.namespace,
            "name": told.name,
            "uid": told.uid,
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
