"""What callers pass to a client: options of `submit`, names and ranges.

All of it is checked before anything is sent. The same error is raised whether the jobs are behind a
gateway or on Kubernetes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeAlias, TypedDict

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from asyncjob.client.errors import InvalidRequestError
from asyncjob.errors import AsyncJobError
from asyncjob.free_json import FreeJsonError, normalize, replace_unencodable
from asyncjob.json_types import Json
from asyncjob.lifecycle.signals import (
    MAX_SIGNAL_BYTES,
    MAX_SIGNAL_NAME_LENGTH,
    is_signal_name,
)
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.models.array import MAX_INLINE_BYTES, MAX_SHARED_PAYLOAD_BYTES
from asyncjob.models.base import RetryPolicy
from asyncjob.models.cron import MAX_ACTIVE_RUNS, MAX_RUNS
from asyncjob.models.field_errors import field_detail
from asyncjob.models.job import Dependency, PayloadSource, RequestData
from asyncjob.names import MAX_NAME_LENGTH, is_object_name
from asyncjob.rest.arrays import ArrayInfo, ArraySubmission, SubmittedArray
from asyncjob.rest.resources import BackfillAsk
from asyncjob.rest.submission import Submission
from asyncjob.submission.errors import from_validation_error, invalid_field
from asyncjob.submission.validation import MAX_PAYLOAD_BYTES

NotFoundErrorFactory = Callable[[str], AsyncJobError]
"""Makes the error for something that does not exist."""


def check_name(name: str, missing: NotFoundErrorFactory) -> str:
    """Return the name; raises `missing` for one that nothing can have."""
    if not is_object_name(name):
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


DependsOn: TypeAlias = Sequence[str | Dependency | HasJobId | SubmittedArray | ArrayInfo]
"""What has to finish first: names of jobs, or what has them, arrays, or whole dependencies."""


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
    deadline: Duration
    depends_on: DependsOn
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
    "deadline": "deadline_seconds",
    "queue_timeout": "queue_timeout_seconds",
    "timeout": "execution_timeout_seconds",
    "lease": "lease_duration_seconds",
    "cancel_grace": "cancel_grace_seconds",
    "ttl": "ttl_seconds_after_finished",
    "retry": "retry_policy",
}
_ARRAY_FIELD_BY_OPTION: Final = {**_FIELD_BY_OPTION, "item_timeout": "item_timeout_seconds"}


class ArrayOptionsGiven(TypedDict, total=False):
    """Options of `submit_array`; fields of `ArraySubmission`, some under a shorter name."""

    name: str
    queue: str
    labels: Mapping[str, str]
    payload: object
    priority: int
    not_before: PointInTime
    depends_on: DependsOn
    chunk_size: int
    parallelism: int
    item_retries: int
    item_timeout: Duration
    results: str
    max_failed: int
    max_failed_percent: int
    queue_timeout: Duration
    timeout: Duration
    lease: Duration
    cancel_grace: Duration
    retry: RetryPolicy
    ttl: Duration
    suspend: bool


def to_array_submission(
    what: str | ArraySubmission,
    items: int | Iterable[object] | None,
    options: ArrayOptionsGiven,
    *,
    now: datetime,
) -> ArraySubmission:
    """Return the submission; raises InvalidSubmissionError that names the field at fault.

    A whole ArraySubmission stands for itself; it goes with neither items nor options.
    """
    if isinstance(what, ArraySubmission):
        if items is not None or options:
            detail = "an ArraySubmission has its items and options in itself"
            raise invalid_field("array", detail)
        return what
    if items is None or isinstance(items, str | bytes | bool):
        raise invalid_field("items", f"{items!r} is neither a number of items nor a list of them")
    given = {
        to_camel(_ARRAY_FIELD_BY_OPTION.get(name, name)): _array_value(name, value, now)
        for name, value in options.items()
        if value is not None and name != "payload"
    }
    shared = _normalized("payload", options.get("payload"), MAX_SHARED_PAYLOAD_BYTES)
    try:
        return ArraySubmission.model_validate(
            {"type": what, "items": _array_items(items), "payload": shared, **given}
        )
    except ValidationError as error:
        raise from_validation_error(error) from error


def _array_value(name: str, value: object, now: datetime) -> object:
    return {"uri": value} if name == "results" else _field_value(name, value, now)


def _array_items(items: int | Iterable[object]) -> dict[str, object]:
    if isinstance(items, int):
        return {"count": items}
    return {"inline": _normalized("items.inline", [*items], MAX_INLINE_BYTES)}


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


def check_signal(name: str, payload: object) -> Json:
    """Return the payload as JSON; raises InvalidRequestError for what no signal can be."""
    if not is_signal_name(name):
        raise InvalidRequestError(
            f"signal: {replace_unencodable(repr(name))} is not the name of a signal: letters, "
            f"digits, dots, dashes and underscores, {MAX_SIGNAL_NAME_LENGTH} at most, the first a "
            "letter or digit"
        )
    try:
        return normalize(payload, what="it", max_bytes=MAX_SIGNAL_BYTES)
    except FreeJsonError as error:
        raise InvalidRequestError(f"payload: {replace_unencodable(str(error))}") from error


def _normalized_payload(payload: object) -> object:
    return _normalized("payload", payload, MAX_PAYLOAD_BYTES)


def _normalized(field: str, value: object, max_bytes: int) -> object:
    try:
        return normalize(value, what=field, max_bytes=max_bytes)
    except FreeJsonError as error:
        raise invalid_field(field, str(error)) from error


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
        case SubmittedArray() | ArrayInfo() if name == "depends_on":
            raise invalid_field("dependsOn", f"{value.name} is one array, not a list: put it in []")
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
    if isinstance(one, SubmittedArray | ArrayInfo):
        return {"array": one.name}
    return one if isinstance(one, Dependency) else {"name": getattr(one, "id", one)}
