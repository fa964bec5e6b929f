"""What callers pass to a client: options of `submit`, names and ranges.

All of it is checked before anything is sent. The same error is raised whether the jobs are behind a
gateway or on Kubernetes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeAlias, TypedDict

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from asyncjob.client.errors import InvalidRequestError
from asyncjob.errors import AsyncJobError
from asyncjob.free_json import FreeJsonError, normalize
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.models.base import NAME_PATTERN, RetryPolicy
from asyncjob.models.cron import MAX_ACTIVE_RUNS, MAX_RUNS
from asyncjob.models.field_errors import field_detail
from asyncjob.models.job import Dependency, PayloadSource, RequestData
from asyncjob.names import MAX_NAME_LENGTH
from asyncjob.rest.resources import BackfillAsk
from asyncjob.rest.submission import Submission
from asyncjob.submission.errors import from_validation_error, invalid_field
from asyncjob.submission.validation import MAX_PAYLOAD_BYTES

NotFoundErrorFactory = Callable[[str], AsyncJobError]
"""Makes the error for something that does not exist."""

_NAME_PATTERN: Final = re.compile(NAME_PATTERN.strip("^$"))


def check_name(name: str, missing: NotFoundErrorFactory) -> str:
    """Return the name; raises `missing` for one that nothing can have."""
    if len(name) > MAX_NAME_LENGTH or not _NAME_PATTERN.fullmatch(name):
        raise missing(f"{name[:MAX_NAME_LENGTH]!r} is not a valid name")
    return name


def check_range(name: str, value: object, minimum: int, maximum: int | None = None) -> int:
    """Return the number; raises InvalidRequestError that names it where it is out of range."""
    if isinstance(value, int) and minimum <= value and (maximum is None or value <= maximum):
        return value
    range_ = f"from {minimum} on" if maximum is None else f"from {minimum} to {maximum}"
    raise InvalidRequestError(f"{name}: {value!r} is not an integer {range_}")


def build_backfill(
    start: str, end: str, *, limit: int, max_active: int, replace: bool
) -> BackfillAsk:
    """Return what is asked of a cron job; raises InvalidRequestError that names what is wrong."""
    try:
        return BackfillAsk.model_validate(
            {
                "from": start,
                "to": end,
                "limit": check_range("limit", limit, 1, MAX_RUNS),
                "maxActive": check_range("max_active", max_active, 1, MAX_ACTIVE_RUNS),
                "replace": replace,
            }
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        detail = field_detail(first)
        message = f"{where}: {detail}" if where else detail
        raise InvalidRequestError(message) from error


Duration: TypeAlias = int | timedelta
"""A span of time; a number counts seconds."""

PointInTime: TypeAlias = datetime | timedelta | str
"""A time: with a zone, or as this far from now, or as RFC 3339 text."""


class HasJobId(Protocol):
    """What has the id of a job: Submitted, Job, JobSummary."""

    @property
    def id(self) -> str:
        """The id."""


class SubmitOptions(TypedDict, total=False):
    """Options of `submit`; fields of `Submission`, some under a shorter name."""

    name: str
    queue: str
    labels: Mapping[str, str]
    payload_from: PayloadSource
    request: RequestData
    priority: int
    not_before: PointInTime
    not_after: PointInTime
    depends_on: Sequence[str | Dependency | HasJobId]
    queue_timeout: Duration
    timeout: Duration
    lease: Duration
    cancel_grace: Duration
    retry: RetryPolicy
    ttl: Duration
    idempotency_key: str
    deduplication_id: str
    concurrency_key: str
    traceparent: str
    suspend: bool


_FIELD_BY_OPTION: Final = {
    "queue_timeout": "queue_timeout_seconds",
    "timeout": "execution_timeout_seconds",
    "lease": "lease_duration_seconds",
    "cancel_grace": "cancel_grace_seconds",
    "ttl": "ttl_seconds_after_finished",
    "retry": "retry_policy",
}


def to_submission(
    what: str | Submission, payload: object, options: SubmitOptions, *, now: datetime
) -> Submission:
    """Return the submission; raises InvalidSubmissionError that names the field at fault.

    A whole Submission stands for itself; it goes with neither payload nor options.
    """
    if isinstance(what, Submission):
        if payload is not None or options:
            raise invalid_field("job", "a Submission has its payload and options in itself")
        return what
    given = {
        to_camel(_FIELD_BY_OPTION.get(name, name)): _field_value(name, value, now)
        for name, value in options.items()
        if value is not None
    }
    try:
        return Submission.model_validate(
            {"type": what, "payload": _normalized_payload(payload), **given}
        )
    except ValidationError as error:
        raise from_validation_error(error) from error


def _normalized_payload(payload: object) -> object:
    try:
        return normalize(payload, what="payload", max_bytes=MAX_PAYLOAD_BYTES)
    except FreeJsonError as error:
        raise invalid_field("payload", str(error)) from error


def _field_value(name: str, value: object, now: datetime) -> object:
    match value:
        case datetime():
            return _absolute_time(name, value)
        case timedelta() if name in {"not_before", "not_after"}:
            return _relative_time(name, value, now)
        case timedelta():
            return round(value.total_seconds())
        case _ if name == "depends_on" and isinstance(value, str):
            raise invalid_field(
                "dependsOn", f"{value!r} is one job, not a list of jobs: [{value!r}]"
            )
        case _ if name == "depends_on" and isinstance(value, Sequence):
            return [_dependency(one) for one in value]
        case _:
            return value


def _absolute_time(name: str, time: datetime) -> str:
    if time.tzinfo is None:
        raise invalid_field(to_camel(name), f"{time!r} has no time zone: datetime.now(UTC) has one")
    try:
        return format_timestamp(time)
    except ValueError as error:
        raise invalid_field(to_camel(name), f"{time!r} is out of range") from error


def _relative_time(name: str, span: timedelta, now: datetime) -> str:
    try:
        return format_timestamp(now + span)
    except (OverflowError, ValueError) as error:
        raise invalid_field(to_camel(name), f"{span!r} from now is out of range") from error


def _dependency(one: object) -> object:
    if isinstance(one, str):
        return {"name": one}
    return one if isinstance(one, Dependency) else {"name": getattr(one, "id", one)}
