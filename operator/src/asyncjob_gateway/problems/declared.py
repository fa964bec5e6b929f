"""Problems as OpenAPI declares them: by status, with an example of each kind."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from asyncjob.rest.problem import PROBLEM_TYPE, Problem
from asyncjob_gateway.kinds import EVERYWHERE, Kind

Responses = dict[int | str, dict[str, Any]]


def problems(*kinds: Kind) -> Responses:
    """Return the declared responses of a route: these kinds, and what any request can meet."""
    every = sorted({*kinds, *EVERYWHERE}, key=lambda kind: (kind.status, kind.slug))
    return {
        status: _declared(list(same)) for status, same in groupby(every, lambda kind: kind.status)
    }


def _declared(kinds: list[Kind]) -> dict[str, Any]:
    content = {
        "schema": {"$ref": "#/components/schemas/Problem"},
        "examples": {kind.slug: {"value": example(kind)} for kind in kinds},
    }
    declared: dict[str, Any] = {
        "description": " ".join(_titles(kinds)),
        "content": {PROBLEM_TYPE: content},
    }
    if any(kind.status in _AGAIN for kind in kinds):
        declared["headers"] = {
            "Retry-After": {
                "description": "Seconds to wait before the next try.",
                "schema": {"type": "integer", "minimum": 1},
            }
        }
    return declared


_AGAIN = frozenset({429, 503})


def _titles(kinds: Iterable[Kind]) -> list[str]:
    return [f"{kind.title}." for kind in kinds]


def example(kind: Kind) -> dict[str, Any]:
    """Return a problem of the kind."""
    problem = Problem(type=kind.type, title=kind.title, status=kind.status, detail=kind.meaning)
    return problem.model_dump(mode="json", by_alias=True, exclude_none=True)
