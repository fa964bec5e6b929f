"""Reads a job's payload, wherever it lies."""

from asyncjob.errors import AsyncJobError
from asyncjob.json_types import Json
from asyncjob_worker.held import HeldJob


class PayloadError(AsyncJobError):
    """The payload cannot be read, and no retry would help."""


class Payloads:
    """Reads payloads for one worker process."""

    async def read(self, held: HeldJob) -> Json:
        """Return the payload as JSON, None if the job has none.

        Raises PayloadError where no retry would help; any other error is a failed attempt.
        """
        if "payloadFrom" in held.spec:
            raise PayloadError(
                "this worker does not read spec.payloadFrom; put the payload into spec.payload"
            )
        return held.spec.get("payload")
