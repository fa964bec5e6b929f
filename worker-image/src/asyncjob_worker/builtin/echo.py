"""`echo`: return the payload. Shows that queue, worker and result work."""

from pydantic import JsonValue

from asyncjob import JobContext


async def echo(job: JobContext, payload: JsonValue = None) -> JsonValue:  # noqa: ARG001  # a handler
    """Return the payload as it is."""
    return payload
