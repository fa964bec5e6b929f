"""The tables of the pages on REST and the gateway, from the program's own tables and OpenAPI."""

from collections.abc import Iterator
from typing import Any

from asyncjob_dev.reference.blocks import table
from asyncjob_dev.reference.options import option_table
from asyncjob_gateway.app import make_app
from asyncjob_gateway.auth.rights import RIGHTS
from asyncjob_gateway.cli import run
from asyncjob_gateway.problem_types import PROBLEM_TYPES

Operation = dict[str, Any]


def routes() -> str:
    """Return a table of routes for each area: what it does, and how it answers."""
    areas: dict[str, list[tuple[str, ...]]] = {}
    for method, path, operation in operations():
        rows = areas.setdefault(operation["tags"][0], [])
        rows.append((f"`{method} {path}`", operation["summary"], _answers(operation)))
    parts = (
        f"### {area[0].upper()}{area[1:]}\n\n" + table(("Request", "Does", "Answers"), rows)
        for area, rows in areas.items()
    )
    return "\n\n".join(parts)


def operations() -> Iterator[tuple[str, str, Operation]]:
    """Yield method, path and description of each route."""
    for path, found in make_app().openapi()["paths"].items():
        for method, operation in found.items():
            yield method.upper(), path, operation


def _answers(operation: Operation) -> str:
    good = [status for status in operation["responses"] if status < "400"]
    own = [
        slug
        for status, response in operation["responses"].items()
        if status >= "400"
        for content in response["content"].values()
        for slug in content.get("examples", {})
        if slug in _PARTICULAR
    ]
    return ", ".join([*good, *(f"`{slug}`" for slug in own)])


_PARTICULAR = frozenset(
    {
        "no-job",
        "no-result",
        "duplicate",
        "job-exists",
        "array-exists",
        "not-cancellable",
        "not-a-dead-letter",
    }
    | {"array-exists", "key-reused", "queue-full", "conflict", "not-synced"}
)
"""Kinds that not every route has."""


def filters() -> str:
    """Return the table of the list's parameters."""
    [found] = [op for method, path, op in operations() if (method, path) == ("GET", "/api/v1/jobs")]
    rows = [(f"`{one['name']}`", one.get("description", "")) for one in found["parameters"]]
    return table(("Parameter", "Meaning"), rows)


def problems() -> str:
    """Return the table of kinds of problems."""
    rows = [
        (f"[`{one.type}`](errors/problems.md#{one.slug})", str(one.status), one.meaning)
        for one in PROBLEM_TYPES
    ]
    return table(("`type`", "Status", "Meaning"), rows)


def gateway_rights() -> str:
    """Return the table of rights."""
    return table(("Right", "Needed to"), [(f"`{right}`", right.purpose) for right in RIGHTS])


def gateway_options() -> str:
    """Return the table of the gateway's options."""
    return option_table(run)
