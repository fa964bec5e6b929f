"""The problem types of RFC 9457 that the gateway answers with, all in one table.

Slugs and statuses are part of the API.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ProblemType:
    """One kind: the last part of its `type`, its HTTP status, title, and what it means."""

    slug: str
    status: int
    title: str
    meaning: str

    @property
    def type(self) -> str:
        """The relative URI that names it."""
        return f"/problems/{self.slug}"


MALFORMED: Final = ProblemType(
    "malformed",
    400,
    "The body is not JSON",
    "The body cannot be read as JSON, or holds what JSON or the store does not have: NaN, halves "
    "of surrogate pairs, integers beyond 64 bits, too deep nesting.",
)
NOT_HTTP: Final = ProblemType(
    "not-http",
    400,
    "Not HTTP",
    "The request cannot be read as HTTP/1.1, lacks Host, or has more than 64 KiB of headers.",
)
UNAUTHENTICATED: Final = ProblemType(
    "unauthenticated",
    401,
    "Who asks is not known",
    "There is no bearer token, or the cluster does not accept it.",
)
FORBIDDEN: Final = ProblemType(
    "forbidden",
    403,
    "Not allowed",
    "The caller lacks the right that `detail` names, or a law of the API server forbids it.",
)
FOREIGN_REQUEST: Final = ProblemType(
    "foreign-request",
    403,
    "Not from this machine",
    "A gateway that is open in development answers only requests to a loopback name, and none "
    "that a page of another site makes a browser send.",
)
STALE_FORM: Final = ProblemType(
    "stale-form",
    403,
    "Not a form of this page",
    "A form of the dashboard was sent by a page of another site, or by one that has got too old.",
)
NOT_FOUND: Final = ProblemType(
    "not-found", 404, "No such thing", "There is no such route, queue, cron job or namespace."
)
NO_JOB: Final = ProblemType(
    "no-job", 404, "No such job", "No job of this id exists in the namespace."
)
NO_RESULT: Final = ProblemType(
    "no-result", 404, "No result", "The job has not succeeded, or its handler returned nothing."
)
METHOD_NOT_ALLOWED: Final = ProblemType(
    "method-not-allowed", 405, "No such method here", "`Allow` says which methods there are."
)
DUPLICATE: Final = ProblemType(
    "duplicate",
    409,
    "Another live job has the deduplication id",
    "`jobId` is that job. The id is free again once it has finished.",
)
JOB_EXISTS: Final = ProblemType(
    "job-exists", 409, "The name is taken", "`jobId` is the job that has the name."
)
NOT_CANCELLABLE: Final = ProblemType(
    "not-cancellable", 409, "The job has succeeded", "A job that has succeeded stays so."
)
NOT_A_DEAD_LETTER: Final = ProblemType(
    "not-a-dead-letter", 409, "Not a dead letter", "Only dead letters are redriven or dismissed."
)
SLOW_BODY: Final = ProblemType(
    "slow-body",
    408,
    "The body did not come",
    "The body was not there within `--body-timeout` seconds of its head. Nothing has been done.",
)
CONFLICT: Final = ProblemType(
    "conflict",
    409,
    "It changed meanwhile",
    "Somebody else was quicker, or the state of the thing does not admit of it. Look again.",
)
TOO_LARGE: Final = ProblemType(
    "too-large",
    413,
    "Too large",
    "The body is larger than the gateway, or the store, takes, or holds too many values.",
)
UNSUPPORTED_MEDIA_TYPE: Final = ProblemType(
    "unsupported-media-type", 415, "Not sent as JSON", "A body is sent as `application/json`."
)
INVALID: Final = ProblemType(
    "invalid", 422, "Something is wrong with a field", "`errors` says what, field by field."
)
KEY_REUSED: Final = ProblemType(
    "key-reused",
    422,
    "The idempotency key belongs to another request",
    "`jobId` is the job that was submitted under the key with another body.",
)
QUEUE_FULL: Final = ProblemType(
    "queue-full",
    429,
    "The queue is full",
    "As many jobs wait in it as its `maxQueued` allows. Try again after `Retry-After`.",
)
THROTTLED: Final = ProblemType(
    "throttled", 429, "Too many requests", "Try again after `Retry-After` seconds."
)
INTERNAL: Final = ProblemType(
    "internal",
    500,
    "The gateway failed",
    "A fault of the gateway; its log has the cause under the request's id.",
)
UNAVAILABLE: Final = ProblemType(
    "unavailable",
    503,
    "The API server gives no answer",
    "Whether a write has taken effect is not known: repeat it under the same idempotency key.",
)
NOT_SYNCED: Final = ProblemType(
    "not-synced",
    503,
    "Not ready yet",
    "The gateway has just started and has not listed all jobs yet. Single jobs can be read.",
)
BUSY: Final = ProblemType(
    "busy", 503, "Too much at once", "The gateway has as many requests or streams as it takes."
)
TIMED_OUT: Final = ProblemType(
    "timed-out",
    503,
    "It took too long",
    "The request was given up. Whether a write has taken effect is not known: repeat it under the "
    "same idempotency key.",
)

PROBLEM_TYPES: Final = (
    *(MALFORMED, NOT_HTTP, UNAUTHENTICATED, FORBIDDEN, FOREIGN_REQUEST, STALE_FORM, NOT_FOUND),
    *(NO_JOB, NO_RESULT, METHOD_NOT_ALLOWED, SLOW_BODY),
    *(
        DUPLICATE,
        JOB_EXISTS,
        NOT_CANCELLABLE,
        NOT_A_DEAD_LETTER,
        CONFLICT,
        TOO_LARGE,
        UNSUPPORTED_MEDIA_TYPE,
        INVALID,
    ),
    *(KEY_REUSED, QUEUE_FULL, THROTTLED, INTERNAL, UNAVAILABLE, NOT_SYNCED, BUSY, TIMED_OUT),
)

ON_EVERY_REQUEST: Final = (
    *(UNAUTHENTICATED, FORBIDDEN, FOREIGN_REQUEST, NOT_FOUND, INVALID),
    *(TOO_LARGE, THROTTLED, INTERNAL, UNAVAILABLE, BUSY, TIMED_OUT),
)
"""What any request can meet."""

ON_BODIES: Final = (MALFORMED, UNSUPPORTED_MEDIA_TYPE, SLOW_BODY)
"""What a request with a body can meet."""

ON_SUBMISSIONS: Final = (*ON_BODIES, DUPLICATE, JOB_EXISTS, KEY_REUSED, QUEUE_FULL)
"""What a submission can meet."""
