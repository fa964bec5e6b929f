"""Problems as OpenAPI declares them: by status, with an example of each kind."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from asyncjob.rest.problem import PROBLEM_CONTENT_TYPE, Problem
from asyncjob_gateway.kinds import ON_EVERY_REQUEST, ProblemType

Responses = dict[int | str, dict[str, Any]]


def problem_responses(*types: ProblemType) -> Responses:
    """Return the declared responses of a route: these kinds, and what any request can meet."""
    every = sorted({*types, *ON_EVERY_REQUEST}, key=lambda kind: (kind.status, kind.slug))
    return {
        status: _response_of(list(same))
        for status, same in groupby(every, lambda kind: kind.status)
    }


def _response_of(types: list[ProblemType]) -> dict[str, Any]:
    content = {
        "schema": {"$ref": "#/components/schemas/Problem"},
        "examples": {kind.slug: {"value": example_problem(kind)} for kind in types},
    }
    declared: dict[str, Any] = {
        "description": " ".join(_titles_of(types)),
        "content": {PROBLEM_CONTENT_TYPE: content},
    }
    if any(kind.status in _RETRYABLE_STATUSES for kind in types):
        declared["headers"] = {
            "Retry-After": {
                "description": "Seconds to wait before the next try.",
                "schema": {"type": "integer", "minimum": 1},
            }
        }
    return declared


_RETRYABLE_STATUSES = frozenset({429, 503})


def _titles_of(types: Iterable[ProblemType]) -> list[str]:
    return [f"{kind.title}." for kind in types]


def example_problem(problem_type: ProblemType) -> dict[str, Any]:
    """Return a problem of the kind."""
    problem = Problem(
        type=problem_type.type,
        title=problem_type.title,
        status=problem_type.status,
        detail=problem_type.meaning,
    )
    return problem.model_dump(mode="json", by_alias=True, exclude_none=True)
