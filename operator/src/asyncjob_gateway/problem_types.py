"""The problem types of RFC 9457 that the gateway answers with, all in one table.

Slugs and statuses are part of the API. Status, title and meaning stand in the catalogue, so that
`asyncjob explain` has them too.
"""

from dataclasses import dataclass
from typing import Final

from asyncjob.explanations.texts import Kind, by_code


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


def _documented(slug: str) -> ProblemType:
    entry = by_code(Kind.PROBLEM)[slug]
    return ProblemType(slug, entry.status, entry.title, entry.means)


MALFORMED: Final = _documented("malformed")
NOT_HTTP: Final = _documented("not-http")
UNAUTHENTICATED: Final = _documented("unauthenticated")
FORBIDDEN: Final = _documented("forbidden")
FOREIGN_REQUEST: Final = _documented("foreign-request")
STALE_FORM: Final = _documented("stale-form")
NOT_FOUND: Final = _documented("not-found")
NO_JOB: Final = _documented("no-job")
NO_RESULT: Final = _documented("no-result")
METHOD_NOT_ALLOWED: Final = _documented("method-not-allowed")
DUPLICATE: Final = _documented("duplicate")
JOB_EXISTS: Final = _documented("job-exists")
ARRAY_EXISTS: Final = _documented("array-exists")
NOT_CANCELLABLE: Final = _documented("not-cancellable")
NOT_A_DEAD_LETTER: Final = _documented("not-a-dead-letter")
SLOW_BODY: Final = _documented("slow-body")
CONFLICT: Final = _documented("conflict")
TOO_LARGE: Final = _documented("too-large")
UNSUPPORTED_MEDIA_TYPE: Final = _documented("unsupported-media-type")
INVALID: Final = _documented("invalid")
KEY_REUSED: Final = _documented("key-reused")
QUEUE_FULL: Final = _documented("queue-full")
THROTTLED: Final = _documented("throttled")
INTERNAL: Final = _documented("internal")
UNAVAILABLE: Final = _documented("unavailable")
NOT_SYNCED: Final = _documented("not-synced")
BUSY: Final = _documented("busy")
TIMED_OUT: Final = _documented("timed-out")

PROBLEM_TYPES: Final = (
    *(MALFORMED, NOT_HTTP, UNAUTHENTICATED, FORBIDDEN, FOREIGN_REQUEST, STALE_FORM, NOT_FOUND),
    *(NO_JOB, NO_RESULT, METHOD_NOT_ALLOWED, SLOW_BODY),
    *(
        DUPLICATE,
        JOB_EXISTS,
        ARRAY_EXISTS,
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
