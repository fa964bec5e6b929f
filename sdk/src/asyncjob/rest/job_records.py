"""What a job keeps of its handler and of those who talk to it: steps, waits and signals."""

from typing import Self

from asyncjob.models.base import FreeJson
from asyncjob.models.job_status import ResultReference
from asyncjob.rest.base import ResponseModel


class StepInfo(ResponseModel):
    """A step of the handler that is done."""

    key: str
    """Its key."""

    attempt: int = 0
    """The attempt that took it."""

    started_at: str | None = None
    """When it was begun, RFC 3339."""

    completed_at: str | None = None
    """When its result was stored."""

    size_bytes: int = 0
    """Size of its result as JSON, in bytes."""

    result: FreeJson | None = None
    """Its result: any JSON. Only with the permission `read-payload`."""

    result_ref: ResultReference | None = None
    """Where a large result is stored. Only with the permission `read-payload`."""

    def without_result(self) -> Self:
        """Return the same without what only `read-payload` shows."""
        return self.model_copy(update={"result": None, "result_ref": None})


class WaitInfo(ResponseModel):
    """A wait of the handler whose end is kept: a sleep, or one with a time limit."""

    key: str
    """Its key; of a signal, its name."""

    kind: str
    """What is waited for: Sleep, Signal or Children."""

    until: str
    """When it is over by time, by the API server's clock."""

    over: bool = False
    """True once its time was found over."""


class SignalInfo(ResponseModel):
    """A signal that a job has been sent."""

    name: str
    """Name of the signal."""

    sent_by: str
    """Name of the user who has sent it."""

    sent_at: str | None = None
    """When it was sent, by the sender's clock."""

    payload: FreeJson | None = None
    """What it says: any JSON. Only with the permission `read-payload`."""

    def without_payload(self) -> Self:
        """Return the same without what only `read-payload` shows."""
        return self.model_copy(update={"payload": None})
