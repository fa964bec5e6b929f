"""The OpenAPI document.

FastAPI's own, with examples of requests, the problem responses of each route, and the security
scheme. Tests send every example.
"""

import json
import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from asyncjob.rest.problem import PROBLEM_CONTENT_TYPE, Problem
from asyncjob.rest.submission import Submission
from asyncjob_gateway.auth.rights import RIGHTS
from asyncjob_gateway.problem_types import ON_EVERY_REQUEST, ProblemType

Examples = dict[str, Any]


def _examples(**values: Any) -> Examples:
    return {name.replace("_", "-"): {"value": value} for name, value in values.items()}


PUBLIC_SUBMISSIONS: Final = _examples(
    plain={"jobType": "SEND_EMAIL", "payload": {"to": "ada@example.org", "subject": "Hello"}},
    once={
        "jobType": "SEND_EMAIL",
        "payload": {"to": "ada@example.org", "subject": "Invoice 42"},
        "idempotencyKey": "invoice-42",
    },
)

SUBMISSIONS: Final = _examples(
    plain={"type": "report.csv", "payload": {"month": "2026-11"}},
    every_option={
        "type": "report.csv",
        "payload": {"month": "2026-11"},
        "queue": "reports",
        "labels": {"team": "finance"},
        "priority": 10,
        "notAfter": "2099-12-31T00:00:00Z",
        "executionTimeoutSeconds": 600,
        "retryPolicy": {"maxRetries": 5, "backoff": "Exponential", "initialDelaySeconds": 2},
        "ttlSecondsAfterFinished": 86400,
        "idempotencyKey": "report-2026-11",
        "concurrencyKey": "finance",
    },
    one_at_a_time={"type": "mailbox.sync", "deduplicationId": "mailbox-7"},
)

ARRAY_SUBMISSIONS: Final = _examples(
    numbers={"type": "thumb", "items": {"count": 100000}, "chunkSize": 500, "maxFailedPercent": 1},
    items={
        "name": "thumbs-2026-11",
        "type": "thumb.file",
        "payload": {"width": 200},
        "items": {"inline": ["cat.jpg", "dog.jpg"]},
        "itemRetries": 2,
        "itemTimeoutSeconds": 60,
    },
)

BATCHES: Final = _examples(
    two={
        "jobs": [
            {"type": "SEND_EMAIL", "payload": {"to": "ada@example.org"}},
            {"type": "SEND_EMAIL", "payload": {"to": "bob@example.org"}},
        ]
    }
)

CHANGES: Final = _examples(suspend={"suspend": True}, hurry={"priority": 100})

SIGNALS: Final = _examples(approval={"payload": {"ok": True, "note": "checked"}})

BULK_ACTIONS: Final = _examples(
    look_first={"selection": {"type": "SEND_EMAIL"}, "limit": 100, "dryRun": True},
    do_it={"selection": {"type": "SEND_EMAIL", "olderThanSeconds": 3600}, "limit": 100},
)

BACKFILLS: Final = _examples(
    two_weeks={"from": "2026-11-01T00:00:00Z", "to": "2026-11-14T23:59:59Z", "maxActive": 2},
)


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


TITLE: Final = "asyncjob"
VERSION: Final = "v1alpha1"
DESCRIPTION: Final = """Durable asynchronous jobs on Kubernetes.

`/jobs` is the small public contract; `/api/v1` has everything else. Every error is a problem
(RFC 9457) whose `type` is one of a closed list. Callers send a bearer token of the cluster; what
they may do is what RBAC says."""

_REF_TEMPLATE: Final = "#/components/schemas/{model}"
_REF_PATTERN: Final = re.compile(r'"#/components/schemas/([^"]+)"')
_FRAMEWORK_SCHEMAS: Final = ("HTTPValidationError", "ValidationError")


def install(app: FastAPI) -> None:
    """Have the app serve the document, made once."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build_document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # the way that the framework documents


def _build_document(app: FastAPI) -> dict[str, Any]:
    found = get_openapi(title=TITLE, version=VERSION, description=DESCRIPTION, routes=app.routes)
    schemas = found["components"]["schemas"]
    for name in _FRAMEWORK_SCHEMAS:
        schemas.pop(name, None)
    for model in (Problem, Submission):
        schemas.update(_schemas_of(model))
    found["components"]["securitySchemes"] = {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of the cluster. Rights: "
            + "; ".join(f"`{right}` to {right.purpose}" for right in RIGHTS)
            + ".",
        }
    }
    for path, operations in found["paths"].items():
        if path not in {"/healthz", "/readyz"}:
            for operation in operations.values():
                operation["security"] = [{"token": []}]
    _forbid_additional_properties(found)
    return _without_framework_errors(found)


def _forbid_additional_properties(found: dict[str, Any]) -> None:
    """Say of all that is sent that fields which nobody knows are refused, inner ones as well."""
    schemas, seen = found["components"]["schemas"], set[str]()
    bodies = [
        operation["requestBody"]
        for operations in found["paths"].values()
        for operation in operations.values()
        if "requestBody" in operation
    ]
    waiting = set(_REF_PATTERN.findall(json.dumps(bodies))) | {Submission.__name__}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        schema = schemas[name]
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        waiting |= set(_REF_PATTERN.findall(json.dumps(schema))) - seen


def _schemas_of(model: Any) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True, ref_template=_REF_TEMPLATE, mode="validation")
    return {**schema.pop("$defs", {}), model.__name__: schema}


def _without_framework_errors(found: dict[str, Any]) -> dict[str, Any]:
    """Take out the framework's own form of a 422 where ours is not declared beside it."""
    for operations in found["paths"].values():
        for operation in operations.values():
            for response in operation["responses"].values():
                content = response.get("content", {})
                if "application/problem+json" in content:
                    content.pop("application/json", None)
    return found
