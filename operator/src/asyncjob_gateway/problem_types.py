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
    "The body cannot be read",
    "The body cannot be parsed as JSON, or contains values that JSON or the store does not "
    "support: NaN, lone surrogates, integers over 64 bits, nesting deeper than 72 levels.",
)
NOT_HTTP: Final = ProblemType(
    "not-http",
    400,
    "Not a valid HTTP request",
    "The request cannot be parsed as HTTP/1.1, lacks Host, or has more than 64 KiB of headers.",
)
UNAUTHENTICATED: Final = ProblemType(
    "unauthenticated",
    401,
    "Not authenticated",
    "The bearer token is missing, or the cluster does not accept it.",
)
FORBIDDEN: Final = ProblemType(
    "forbidden",
    403,
    "Not allowed",
    "The caller lacks the permission named in `detail`, or an admission rule forbids the request.",
)
FOREIGN_REQUEST: Final = ProblemType(
    "foreign-request",
    403,
    "Not a local request",
    "Without authentication (development), the gateway accepts only requests to a loopback name, "
    "and none that a browser sends for a page of another site.",
)
STALE_FORM: Final = ProblemType(
    "stale-form",
    403,
    "The form is not valid any more",
    "A form of the dashboard was sent by a page of another site, or by an outdated page. Load the "
    "page again.",
)
NOT_FOUND: Final = ProblemType(
    "not-found", 404, "Not found", "The route, queue, cron job or namespace does not exist."
)
NO_JOB: Final = ProblemType(
    "no-job", 404, "Job not found", "No job with this id exists in the namespace."
)
NO_RESULT: Final = ProblemType(
    "no-result", 404, "No result", "The job has not succeeded, or its handler returned nothing."
)
METHOD_NOT_ALLOWED: Final = ProblemType(
    "method-not-allowed", 405, "Method not allowed", "`Allow` lists the supported methods."
)
DUPLICATE: Final = ProblemType(
    "duplicate",
    409,
    "An unfinished job has the same deduplication id",
    "`jobId` is that job. The id can be used again once that job has finished.",
)
JOB_EXISTS: Final = ProblemType(
    "job-exists", 409, "The name is taken", "`jobId` is the job with this name."
)
NOT_CANCELLABLE: Final = ProblemType(
    "not-cancellable", 409, "The job has succeeded", "A succeeded job cannot be cancelled."
)
NOT_A_DEAD_LETTER: Final = ProblemType(
    "not-a-dead-letter", 409, "Not a dead letter", "Only dead letters can be redriven or dismissed."
)
SLOW_BODY: Final = ProblemType(
    "slow-body",
    408,
    "The body was not received in time",
    "The body was not received within `--body-timeout` seconds of the headers. Nothing was done.",
)
CONFLICT: Final = ProblemType(
    "conflict",
    409,
    "Conflict",
    "The object was changed by another request, or its state does not allow the change. Read it "
    "again.",
)
TOO_LARGE: Final = ProblemType(
    "too-large",
    413,
    "Too large",
    "The body exceeds the size limit of the gateway or the store, or contains too many values.",
)
UNSUPPORTED_MEDIA_TYPE: Final = ProblemType(
    "unsupported-media-type", 415, "Unsupported media type", "Send the body as `application/json`."
)
INVALID: Final = ProblemType(
    "invalid", 422, "Invalid request", "`errors` lists the invalid fields."
)
KEY_REUSED: Final = ProblemType(
    "key-reused",
    422,
    "The idempotency key was used for another request",
    "`jobId` is the job that was submitted with this key and another body.",
)
QUEUE_FULL: Final = ProblemType(
    "queue-full",
    429,
    "The queue is full",
    "The number of waiting jobs has reached `maxQueued`. Try again after `Retry-After` seconds.",
)
THROTTLED: Final = ProblemType(
    "throttled", 429, "Too many requests", "Try again after `Retry-After` seconds."
)
INTERNAL: Final = ProblemType(
    "internal",
    500,
    "Internal error",
    "An error of the gateway; its log contains the cause with the id of the request.",
)
UNAVAILABLE: Final = ProblemType(
    "unavailable",
    503,
    "The API server is not available",
    "It is unknown whether a write took effect: repeat it with the same idempotency key.",
)
NOT_SYNCED: Final = ProblemType(
    "not-synced",
    503,
    "Not ready yet",
    "The gateway has just started and has not listed all jobs yet. Single jobs can be read.",
)
BUSY: Final = ProblemType(
    "busy", 503, "Too busy", "The gateway has reached its limit of requests or streams."
)
TIMED_OUT: Final = ProblemType(
    "timed-out",
    503,
    "Timed out",
    "The request took too long. It is unknown whether a write took effect: repeat it with the same "
    "idempotency key.",
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
