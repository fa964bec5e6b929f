"""The manifests for the built-in handlers: each fits its handler, and each handler has one."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from asyncjob import AsyncJob
from asyncjob_worker.builtin import build_app
from unit.examples.notes import ROOT

MANIFESTS = sorted((ROOT / "examples" / "built-in").glob("*.yaml"))
APP = build_app({"ASYNCJOB_EXEC_ALLOW": "/usr/bin/sha256sum"})
REFERENCE = ROOT / "docs" / "reference" / "built-in-handlers.md"

each_manifest = pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)


def load(path: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return manifest


@each_manifest
def test_a_manifest_begins_with_one_line_that_explains_it(path: Path) -> None:
    first, second, *_ = path.read_text(encoding="utf-8").splitlines()
    assert first.startswith("# ")
    assert not second.startswith("#")


@each_manifest
def test_a_job_fits_the_model_and_its_handler(path: Path) -> None:
    job = AsyncJob.model_validate(load(path))
    assert job.metadata.name == path.stem
    APP.handlers[job.spec.type].read_payload(job.spec.payload)


def test_every_handler_has_an_example() -> None:
    assert {load(path)["spec"]["type"] for path in MANIFESTS} == set(APP.handlers)


@pytest.mark.parametrize("type_", ["http", "exec", "sleep"])
def test_the_reference_names_every_field_and_its_default(type_: str) -> None:
    schema = APP.handlers[type_].payload_adapter.json_schema(by_alias=True)
    section = REFERENCE.read_text(encoding="utf-8").split(f"## `{type_}`")[1].split("\n## ")[0]
    for name, field in schema["properties"].items():
        row, *_ = [line for line in section.splitlines() if line.startswith(f"| `{name}` |")]
        shown = row.split(" | ")[1]
        assert is_shown(field.get("default"), shown), row


def is_shown(default: object, shown: str) -> bool:
    """Return whether a default is what the reference has for it."""
    if isinstance(default, list):
        return shown == f"`[{', '.join(map(str, default))}]`"
    if isinstance(default, bool):
        return shown == str(default).lower()
    if isinstance(default, float | int):
        return float(shown) == default
    return shown in {"none", "required", "empty"} if not default else shown == f"`{default}`"
