"""What `submit` takes, as a caller in Python likes to say it, and the submission it makes."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeAlias, TypedDict

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from asyncjob.free_json import FreeJsonError, normalize
from asyncjob.intake.checks import MAX_PAYLOAD_BYTES
from asyncjob.intake.errors import from_validation_error, invalid_field
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.models.retry_policy import RetryPolicy
from asyncjob.models.spec import Dependency, PayloadSource, RequestData
from asyncjob.rest.submission import Submission

Duration: TypeAlias = int | timedelta
"""A span of time; a number counts seconds."""

PointInTime: TypeAlias = datetime | timedelta | str
"""A time: with a zone, or as so long from now, or as RFC 3339 text."""


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
    said = {
        to_camel(_FIELD_BY_OPTION.get(name, name)): _field_value(name, value, now)
        for name, value in options.items()
        if value is not None
    }
    try:
        return Submission.model_validate(
            {"type": what, "payload": _normalized_payload(payload), **said}
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
