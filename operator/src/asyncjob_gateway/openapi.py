"""The OpenAPI document: the framework's, told of our errors and of how callers sign in."""

import json
import re
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from asyncjob.rest.problem import Problem
from asyncjob.rest.submission import Submission
from asyncjob_gateway.auth.rights import RIGHTS

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
