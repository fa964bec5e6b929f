"""What the resource models share.

The base class (camelCase on the wire, docstrings as descriptions), bounded types, object metadata,
the retry policy.

Every string, list and map has a maximum: unbounded ones exceed the API server's budget for CEL.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

from asyncjob.lifecycle.policy import MAX_DURATION_SECONDS, Backoff
from asyncjob.names import MAX_NAME_LENGTH, NAME_PATTERN


class Model(BaseModel):
    """Base of all resource models. Unknown fields are ignored: an object may be newer than us."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
        frozen=True,
        extra="ignore",
    )


FreeJson = Annotated[JsonValue, WithJsonSchema({"x-kubernetes-preserve-unknown-fields": True})]
"""Any JSON. Replaced whole, never merged."""

_DATE = "[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
_ZONE = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
TIMESTAMP_PATTERN = f"^{_DATE}T{_TIME}{_ZONE}$"
"""The format alone lets the API server accept a lower-case t and z, and more that few can read."""

Timestamp = Annotated[
    str,
    Field(max_length=40, pattern=TIMESTAMP_PATTERN, json_schema_extra={"format": "date-time"}),
]
"""RFC 3339 text: upper-case T, and Z or a numeric offset."""

QUEUE_PATTERN = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
TYPE_PATTERN = r"^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$"

ObjectName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=NAME_PATTERN)]
QueueName = Annotated[str, Field(min_length=1, max_length=63, pattern=QUEUE_PATTERN)]
JobType = Annotated[str, Field(min_length=1, max_length=128, pattern=TYPE_PATTERN)]
Key = Annotated[str, Field(min_length=1, max_length=256)]
CategoryName = Annotated[str, Field(min_length=1, max_length=64)]
Uid = Annotated[str, Field(max_length=64)]
Count = Annotated[int, Field(ge=0, le=2_147_483_647)]


def _without_default(schema: JsonDict) -> None:
    schema.pop("default", None)


CountFromZero = Annotated[int, Field(ge=0, le=2_147_483_647, json_schema_extra=_without_default)]
"""A count that is not stored as long as it is 0: the API server goes through each field that an
object has, at each write of it."""

Seconds = Annotated[int, Field(ge=0, le=315_360_000)]
DelaySeconds = Annotated[float, Field(ge=0, le=MAX_DURATION_SECONDS)]


class ObjectMeta(Model):
    """Standard object metadata; other fields are left to the API server."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


CategoryList = Annotated[list[CategoryName], Field(max_length=20)]


class RetryPolicy(Model):
    """When and how often a failed attempt is retried. Absent fields are inherited."""

    max_retries: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """Retries after the first attempt; 0 means none. Built in: 3."""

    backoff: Backoff | None = None
    """Fixed: always the initial delay. Exponential: doubled each time. Built in: Exponential."""

    initial_delay_seconds: DelaySeconds | None = None
    """Delay before the first retry, in seconds; 0 is allowed. Built in: 2."""

    max_delay_seconds: DelaySeconds | None = None
    """Upper bound of the delay before jitter, in seconds. Built in: 3600."""

    jitter: Annotated[float, Field(ge=0, le=1)] | None = None
    """Random share, 0 to 1, by which the delay is lengthened or shortened. Built in: 0.2."""

    retry_on: CategoryList | None = None
    """Retry only errors of these categories; empty means all."""

    no_retry_on: CategoryList | None = None
    """Never retry errors of these categories; wins over retryOn."""

    max_crashes: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Number of crashes (the worker or the handler's process died) after which the job is tried
    again. A crash does not count as a retry. Built in: 3."""
