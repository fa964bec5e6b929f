"""Attributes that all spans share: OpenTelemetry's of messaging, and our own under `asyncjob`.

Never a payload, a result or a message: who may read traces need not be allowed to read jobs.
"""

from typing import Final

MESSAGING_SYSTEM: Final = "asyncjob"

SEND: Final = "send"
RECEIVE: Final = "receive"
PROCESS: Final = "process"


def operation_attributes(name: str, kind: str, type_: str, queue: str) -> dict[str, str]:
    """Return those of an operation; `kind` is one of the closed list above."""
    return {
        "messaging.system": MESSAGING_SYSTEM,
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": queue,
        "asyncjob.type": type_,
        "asyncjob.queue": queue,
    }


def job_attributes(name: str) -> dict[str, str]:
    """Return those that name the job."""
    return {"messaging.message.id": name, "asyncjob.name": name}
