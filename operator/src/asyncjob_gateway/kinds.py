"""The kinds of problems, all in one table. Slugs and statuses are part of the interface."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: the last part of its `type`, its HTTP status, title, and what it means."""

    slug: str
    status: int
    title: str
    meaning: str

    @property
    def type(self) -> str:
        """The relative URI that names it."""
        return f"/problems/{self.slug}"


MALFORMED: Final = Kind(
    "malformed",
    400,
    "The body is not JSON",
    "The body cannot be read as JSON, or holds what JSON or the store does not have: NaN, halves "
    "of surrogate pairs, integers beyond 64 bits, too deep nesting.",
)
NOT_HTTP: Final = Kind(
    "not-http",
    400,
    "Not HTTP",
    "The request cannot be read as HTTP/1.1, lacks Host, or has more than 64 KiB of headers.",
)
UNAUTHENTICATED: Final = Kind(
    "unauthenticated",
    401,
    "Who asks is not known",
    "There is no bearer token, or the cluster does not accept it.",
)
FORBIDDEN: Final = Kind(
    "forbidden",
    403,
    "Not allowed",
    "The caller lacks the right that `detail` names, or a law of the API server forbids it.",
)
FOREIGN: Final = Kind(
    "foreign-request",
    403,
    "Not from this machine",
    "A gateway that is open in development answers only requests to a loopback name, and none "
    "that a page of another site makes a browser send.",
)
STALE_FORM: Final = Kind(
    "stale-form",
    403,
    "Not a form of this page",
    "A form of the dashboard was sent by a page of another site, or by one that has got too old.",
)
NOT_FOUND: Final = Kind(
    "not-found", 404, "No such thing", "There is no such route, queue, cron job or namespace."
)
NO_JOB: Final = Kind("no-job", 404, "No such job", "No job of this id exists in the namespace.")
NO_RESULT: Final = Kind(
    "no-result", 404, "No result", "The job has not succeeded, or its handler returned nothing."
)
BAD_METHOD: Final = Kind(
    "method-not-allowed", 405, "No such method here", "`Allow` says which methods there are."
)
DUPLICATE: Final = Kind(
    "duplicate",
    409,
    "Another live job has the deduplication id",
    "`jobId` is that job. The id is free again once it has finished.",
)
JOB_EXISTS: Final = Kind(
    "job-exists", 409, "The name is taken", "`jobId` is the job that has the name."
)
NOT_CANCELLABLE: Final = Kind(
    "not-cancellable", 409, "The job has succeeded", "A job that has succeeded stays so."
)
NOT_DEAD: Final = Kind(
    "not-a-dead-letter", 409, "Not a dead letter", "Only dead letters are redriven or dismissed."
)
SLOW_BODY: Final = Kind(
    "slow-body",
    408,
    "The body did not come",
    "The body was not there within `--body-timeout` seconds of its head. Nothing has been done.",
)
CONFLICT: Final = Kind(
    "conflict",
    409,
    "It changed meanwhile",
    "Somebody else was quicker, or the state of the thing does not admit of it. Look again.",
)
TOO_LARGE: Final = Kind(
    "too-large",
    413,
    "Too large",
    "The body is larger than the gateway, or the store, takes, or holds too many values.",
)
BAD_MEDIA: Final = Kind(
    "unsupported-media-type", 415, "Not sent as JSON", "A body is sent as `application/json`."
)
INVALID: Final = Kind(
    "invalid", 422, "Something is wrong with a field", "`errors` says what, field by field."
)
KEY_REUSED: Final = Kind(
    "key-reused",
    422,
    "The idempotency key belongs to another request",
    "`jobId` is the job that was submitted under the key with another body.",
)
QUEUE_FULL: Final = Kind(
    "queue-full",
    429,
    "The queue is full",
    "As many jobs wait in it as its `maxQueued` allows. Try again after `Retry-After`.",
)
THROTTLED: Final = Kind(
    "throttled", 429, "Too many requests", "Try again after `Retry-After` seconds."
)
INTERNAL: Final = Kind(
    "internal",
    500,
    "The gateway failed",
    "A fault of the gateway; its log has the cause under the request's id.",
)
UNAVAILABLE: Final = Kind(
    "unavailable",
    503,
    "The API server gives no answer",
    "Whether a write has taken effect is not known: repeat it under the same idempotency key.",
)
NOT_SYNCED: Final = Kind(
    "not-synced",
    503,
    "Not ready yet",
    "The gateway has just started and has not listed all jobs yet. Single jobs can be read.",
)
BUSY: Final = Kind(
    "busy", 503, "Too much at once", "The gateway has as many requests or streams as it takes."
)
TIMED_OUT: Final = Kind(
    "timed-out",
    503,
    "It took too long",
    "The request was given up. Whether a write has taken effect is not known: repeat it under the "
    "same idempotency key.",
)

KINDS: Final = (
    *(MALFORMED, NOT_HTTP, UNAUTHENTICATED, FORBIDDEN, FOREIGN, STALE_FORM, NOT_FOUND),
    *(NO_JOB, NO_RESULT, BAD_METHOD, SLOW_BODY),
    *(DUPLICATE, JOB_EXISTS, NOT_CANCELLABLE, NOT_DEAD, CONFLICT, TOO_LARGE, BAD_MEDIA, INVALID),
    *(KEY_REUSED, QUEUE_FULL, THROTTLED, INTERNAL, UNAVAILABLE, NOT_SYNCED, BUSY, TIMED_OUT),
)

EVERYWHERE: Final = (
    *(UNAUTHENTICATED, FORBIDDEN, FOREIGN, NOT_FOUND, INVALID),
    *(TOO_LARGE, THROTTLED, INTERNAL, UNAVAILABLE, BUSY, TIMED_OUT),
)
"""What any request can meet."""

OF_BODIES: Final = (MALFORMED, BAD_MEDIA, SLOW_BODY)
"""What a request with a body can meet."""

OF_SUBMISSIONS: Final = (*OF_BODIES, DUPLICATE, JOB_EXISTS, KEY_REUSED, QUEUE_FULL)
"""What a submission can meet."""
