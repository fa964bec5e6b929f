"""Requests made up from the OpenAPI document: no fault, and no answer that it does not declare.

Seeded, so that each run sends the same. ASYNCJOB_FUZZ_EXAMPLES is how many are sent to each
operation, of good ones and of bad ones: for a long run set it to 1000.
"""

import os
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from asyncjob_gateway.app import make_app

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(600)]

EXAMPLES = int(os.environ.get("ASYNCJOB_FUZZ_EXAMPLES", "5"))
CONFORM = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
BY_ITSELF = "/api/v1/jobs/batch"
"""Answers 200 and says of each job what is wrong with it."""

ENDLESS = "/events$"


def document() -> dict[str, Any]:
    """Return the OpenAPI document as it holds for an open gateway: no request lacks a token."""
    found = make_app().openapi()
    for operations in found["paths"].values():
        for operation in operations.values():
            operation.pop("security", None)
    return found


SCHEMA = schemathesis.openapi.from_dict(document()).exclude(path_regex=ENDLESS)
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations() if isinstance(result, Ok)]
TRIALS = [
    pytest.param(operation, mode, id=f"{operation.label} {mode.value}")
    for operation in (
        result.ok() for result in SCHEMA.get_all_operations() if isinstance(result, Ok)
    )
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or "/jobs" in operation.path or "/api" in operation.path
]


@pytest.mark.parametrize(("operation", "mode"), TRIALS)
def test_every_answer_is_a_declared_one(http: httpx.Client, operation: Any, mode: Any) -> None:
    checks = list(CONFORM)
    if mode is GenerationMode.NEGATIVE and operation.path != BY_ITSELF:
        checks.append(negative_data_rejection)

    @seed(20261121)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        response = case.call(base_url=str(http.base_url))
        case.validate_response(response, checks=checks)

    send()
