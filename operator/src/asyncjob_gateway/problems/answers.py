"""Problems as HTTP answers. Knows no routes."""

import math
from collections.abc import Mapping

from starlette.responses import Response

from asyncjob.rest.problem import PROBLEM_CONTENT_TYPE, Problem
from asyncjob_gateway.errors import RefusedError


def problem_response(error: RefusedError, path: str) -> Response:
    """Return the answer that tells of the error."""
    problem = Problem(
        type=error.kind.type,
        title=error.kind.title,
        status=error.kind.status,
        detail=error.detail,
        instance=path,
        job_id=error.job_id,
        errors=list(error.errors),
    )
    body = problem.model_dump_json(by_alias=True, exclude_none=True)
    return Response(body, error.kind.status, _response_headers(error), PROBLEM_CONTENT_TYPE)


def _response_headers(error: RefusedError) -> Mapping[str, str]:
    if error.retry_after is None:
        return error.headers
    return {**error.headers, "Retry-After": str(max(1, math.ceil(error.retry_after)))}
