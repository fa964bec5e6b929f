"""The facts of one attempt."""

from dataclasses import dataclass, field

from asyncjob.json_types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class JobParent:
    """The job that submitted this one; `name` is None where only its UID is known."""

    uid: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class JobInfo:
    """The facts of one attempt; they do not change while it runs."""

    namespace: str
    name: str
    uid: str
    type: str
    queue: str
    attempt: int
    retries: int = 0
    max_retries: int = 0
    last_checkpoint: Json = None
    request: JsonObject = field(default_factory=dict)
    traceparent: str | None = None
    priority: int = 0
    parent: JobParent | None = None
    scheduled_time: str | None = None
