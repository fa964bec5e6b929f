"""The pages on REST and the gateway say what the program does, and its OpenAPI what it answers."""

from pathlib import Path
from typing import Any

import pytest

from asyncjob.kube import KubeSession
from asyncjob.metrics import gateway
from asyncjob_dev.reference import cli, rest
from asyncjob_dev.reference.blocks import fill, names
from asyncjob_gateway.app import make_app
from asyncjob_gateway.cache.namespace import NamespaceCache
from asyncjob_gateway.problem_types import ON_EVERY_REQUEST, PROBLEM_TYPES
from asyncjob_gateway.server import make_context
from asyncjob_gateway.settings import GatewaySettings
from asyncjob_gateway.telemetry import GatewayMetrics

DOCS = Path(__file__).parents[3] / "docs/reference"
BLOCKS = {
    "rest.routes": rest.routes,
    "rest.filters": rest.filters,
    "rest.problems": rest.problems,
    "rest.rights": rest.gateway_rights,
    "gateway.options": rest.gateway_options,
    "gateway.exit-codes": lambda: cli.exit_codes("gateway-"),
}
DOCUMENT = make_app().openapi()
OPERATIONS = [
    (f"{method.upper()} {path}", operation)
    for path, found in DOCUMENT["paths"].items()
    for method, operation in found.items()
]


@pytest.mark.parametrize("page", ["rest.md", "gateway.md"])
def test_the_generated_parts_of_a_page_are_up_to_date(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert names(text)
    assert fill(text, BLOCKS) == text


@pytest.mark.parametrize(("name", "operation"), OPERATIONS, ids=[name for name, _ in OPERATIONS])
def test_each_operation_declares_its_problems_and_who_may_ask(
    name: str, operation: dict[str, Any]
) -> None:
    declared = {
        slug
        for response in operation["responses"].values()
        for slug in response.get("content", {})
        .get("application/problem+json", {})
        .get("examples", {})
    }
    assert operation["summary"]
    assert operation["description"]
    if name.endswith(("healthz", "readyz")):
        assert not declared
        assert "security" not in operation
        return
    assert (
        {kind.slug for kind in ON_EVERY_REQUEST}
        <= declared
        <= {kind.slug for kind in PROBLEM_TYPES}
    )
    assert operation["security"] == [{"token": []}]
    assert "HTTPValidationError" not in str(operation)
    if "requestBody" in operation:
        [content] = operation["requestBody"]["content"].values()
        assert content["examples"]
        assert "malformed" in declared


def test_just_the_metrics_of_the_table_can_be_scraped() -> None:
    metrics = GatewayMetrics()
    make_context(GatewaySettings(), KubeSession, {"ns": NamespaceCache("ns")}, metrics)  # type: ignore[arg-type]  # no session is used
    found = {one.name for one in metrics.registry.collect()}
    ours = {name for name in found if name.startswith("asyncjob_")}
    assert ours == {spec.name for spec in gateway.TABLE}
