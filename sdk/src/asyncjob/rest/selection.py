"""Which jobs a list or a bulk action means."""

from typing import Annotated

from pydantic import Field

from asyncjob.lifecycle.phases import Phase
from asyncjob.models.base import JobType, QueueName
from asyncjob.rest.wire import RequestModel, ResponseModel

DEFAULT_PAGE_SIZE = 50
"""Jobs on a page unless told otherwise."""

MAX_PAGE_SIZE = 500
"""Most jobs on a page."""

MAX_BULK_JOBS = 10_000
"""Most jobs that one bulk action touches."""


class Selection(RequestModel):
    """Filters; a job has to match all that are set."""

    phase: Annotated[list[Phase], Field(max_length=8)] | None = None
    """Phases, any of them."""

    type: JobType | None = None
    """Type of the job."""

    queue: QueueName | None = None
    """Its queue."""

    label: Annotated[str, Field(max_length=512)] | None = None
    """A label selector as kubectl takes it: `team=mail,tier!=free`, `team in (a,b)`, `team`."""

    parent: Annotated[str, Field(max_length=253)] | None = None
    """Name of the job that submitted it."""

    cron_job: Annotated[str, Field(max_length=253)] | None = None
    """Name of the schedule that created it."""

    reason: Annotated[str, Field(max_length=64)] | None = None
    """Its reason."""

    older_than_seconds: Annotated[int, Field(ge=0, le=315_360_000)] | None = None
    """Created at least so long ago."""

    newer_than_seconds: Annotated[int, Field(ge=0, le=315_360_000)] | None = None
    """Created at most so long ago."""

    text: Annotated[str, Field(max_length=256)] | None = None
    """Occurs, in any case, in its name, type, message or error."""


class BulkAsk(RequestModel):
    """A redrive or dismissal of all dead letters that match."""

    selection: Selection = Field(default_factory=Selection)
    """Which; only dead letters are touched, whatever the filters say."""

    limit: Annotated[int, Field(ge=1, le=MAX_BULK_JOBS)] = 100
    """At most so many, oldest first."""

    dry_run: bool = False
    """Only say which they would be."""


class BulkFailure(ResponseModel):
    """One that could not be done."""

    id: str
    """Its name."""

    detail: str
    """Why."""


class BulkReport(ResponseModel):
    """What became of a bulk action."""

    matched: int
    """Dead letters that match."""

    done: list[str]
    """Names of those acted on (in a dry run: that would be)."""

    failed: list[BulkFailure] = Field(default_factory=list)
    """Those that could not be done."""

    dry_run: bool = False
    """Nothing was changed."""
