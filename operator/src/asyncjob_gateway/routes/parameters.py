"""Parameters that several routes have."""

from typing import Annotated

from fastapi import Header, Path
from pydantic import Field

from asyncjob.models.base import NAME_PATTERN, QUEUE_PATTERN, Key

JobId = Annotated[
    str,
    Path(
        alias="id", min_length=1, max_length=253, pattern=NAME_PATTERN, description="The job's id."
    ),
]

QueueName = Annotated[
    str,
    Path(
        alias="name", min_length=1, max_length=63, pattern=QUEUE_PATTERN, description="The queue."
    ),
]

CronJobName = Annotated[
    str,
    Path(
        alias="name",
        min_length=1,
        max_length=253,
        pattern=NAME_PATTERN,
        description="The cron job.",
    ),
]

IdempotencyKey = Annotated[
    Key | None,
    Header(
        alias="Idempotency-Key",
        description="The same as `idempotencyKey` in the body, for a body that has none.",
    ),
]

LastEventId = Annotated[
    Annotated[str, Field(max_length=64, pattern="^[0-9]+$")] | None,
    Header(
        alias="Last-Event-ID",
        description="Id of the last event that was received, as browsers send it.",
    ),
]
