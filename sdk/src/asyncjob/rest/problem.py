"""An error response as RFC 9457 defines it, with the fields at fault."""

from pydantic import Field

from asyncjob.rest.base import ResponseModel

PROBLEM_CONTENT_TYPE = "application/problem+json"


class FieldProblem(ResponseModel):
    """What is wrong with one field."""

    field: str
    """Where: `retryPolicy.maxRetries`, `jobs.3.type`, `query.limit`."""

    detail: str
    """What is wrong with it, and what it may be."""


class Problem(ResponseModel):
    """Why a request was not done."""

    type: str = "about:blank"
    """A relative URI that names the kind: `/problems/duplicate`; documented one by one."""

    title: str
    """The kind in words; the same for all of the kind."""

    status: int
    """The HTTP status."""

    detail: str = ""
    """What is wrong this time, and the way out."""

    instance: str | None = None
    """Path of the request."""

    job_id: str | None = None
    """The existing job that stands in the way, if one does."""

    errors: list[FieldProblem] = Field(default_factory=list)
    """Field by field, where fields are at fault."""
