"""The page on limits has the numbers of the code, and every bound that a user can meet is on it."""

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from asyncjob import models
from asyncjob.schema.structural import structural
from asyncjob_dev.reference import limits
from asyncjob_dev.reference.__main__ import BLOCKS
from asyncjob_dev.reference.blocks import fill
from asyncjob_dev.reference.resources import fields

PAGE = Path(__file__).parents[3] / "docs/reference/limits.md"
MODULES = (
    *("asyncjob.free_json", "asyncjob.lifecycle.phase_change", "asyncjob.lifecycle.policy"),
    *("asyncjob.models.cron", "asyncjob.offload.store", "asyncjob.rest.listing"),
    *("asyncjob.rest.strict", "asyncjob.rest.submission", "asyncjob.submission.validation"),
    *("asyncjob.cli.input.documents", "asyncjob.cli.input.yaml_loader"),
    *("asyncjob.cli.backup.reader", "asyncjob.cli.commands.watch"),
    *("asyncjob_gateway.limits.bodies", "asyncjob_gateway.limits.load"),
    *("asyncjob_gateway.limits.strict_json", "asyncjob_gateway.dashboard.pages.dead_letters"),
    *("asyncjob_operator.telemetry.job_metrics", "asyncjob_worker.isolation.protocol"),
)
"""Modules whose public `MAX_…` bound what users do."""

ELSEWHERE: Mapping[str, str] = {
    "MAX_DURATION_SECONDS": "on the pages of the resources, with each field",
    "MAX_ERROR_TYPE_LENGTH": "the name of a class, cut",
    "MAX_ERROR_TEXT_LENGTH": "what a store says, cut within a message",
    "MAX_PROBLEMS": "how many mistakes a refusal names",
    "MAX_REPORTED_MISTAKES": "how many mistakes a message names",
    "MAX_NUMBER_LENGTH": "a number in YAML that nobody means",
    "MAX_SHOWN_KEY": "how much of a key a message repeats",
    "MAX_LISTED_NAMES": "how many names a question shows",
    "MAX_SLOW_BODIES": "callers are told throttled or busy, as beyond the requests at once",
    "MAX_SLOW_BODIES_PER_SENDER": "the same",
    "MAX_LARGE_BYTES": "large bodies wait for one another; nobody is refused",
    "MAX_QUEUE_TYPES": "pairs of what is bounded on the page already",
}
"""Bounds that are not on the page, and why not."""

SCHEMAS: tuple[Any, ...] = (
    *(models.AsyncJobSpec, models.AsyncJobStatus, models.AsyncQueueSpec, models.AsyncQueueStatus),
    *(models.AsyncCronJobSpec, models.AsyncCronJobStatus),
)
BOUNDS = ("maxLength", "maxItems", "maxProperties", "maximum")


def bounds(schema: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """Yield the bounds that a reader of a field's row has to see, with the field's name there."""
    if path and "format" not in schema:
        yield from ((path, schema[name]) for name in BOUNDS if name in schema)
    for name, inner in schema.get("properties", {}).items():
        if path or name != "metadata":
            yield from bounds(inner, f"{path}.{name}".lstrip("."))
    if "additionalProperties" in schema:
        yield from bounds(schema["additionalProperties"], path)
    if items := schema.get("items"):
        yield from bounds(items, f"{path}[]" if "properties" in items else path)


@pytest.mark.parametrize("model", SCHEMAS, ids=lambda model: model.__name__)
def test_every_bound_of_a_field_stands_in_its_row(model: Any) -> None:
    rows = dict(re.findall(r"^\| `([^`]+)` \|(.*)$", fields(model), re.MULTILINE))
    missing = [
        (path, bound)
        for path, bound in bounds(structural(model))
        if not re.search(rf"\b{bound}\b", rows[path])
    ]
    assert missing == []


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert fill(text, BLOCKS) == text
    assert text.count("| --- | --- | --- |") == 5


def constants() -> list[tuple[str, str]]:
    """Return the public bounds, with their modules; what is only imported there does not count."""
    found = []
    for name in MODULES:
        source = inspect.getsource(importlib.import_module(name))
        found += [
            (name, one) for one in re.findall(r"^(MAX_\w+)(?:: \w+)? =", source, re.MULTILINE)
        ]
    return found


@pytest.mark.parametrize(("module", "constant"), constants())
def test_a_bound_is_on_the_page_or_says_why_not(module: str, constant: str) -> None:
    source = inspect.getsource(limits)
    last = module.rpartition(".")[2]
    is_used = re.search(rf"\b{last}\.{constant}\b|import [\w, ]*\b{constant}\b", source)
    assert bool(is_used) != (constant in ELSEWHERE), constant


def test_the_reasons_are_about_bounds_that_there_are() -> None:
    assert set(ELSEWHERE) <= {constant for _, constant in constants()}
    assert len(constants()) > 30
