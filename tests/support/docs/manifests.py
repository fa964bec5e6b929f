"""What is wrong with YAML in the documentation, by the schemas of what it is for."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import jsonschema
import yaml

from asyncjob.names import GROUP
from asyncjob.schema.crd import CUSTOM_RESOURCES, crd
from support.docs.blocks import ROOT, CodeBlock, commands_of

_OWN = ("spec", "status")
_COMMAND = re.compile(r"\$\([^)]*\)")


def _resources() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for one in CUSTOM_RESOURCES:
        spec: Any = crd(one)["spec"]
        names, version = spec["names"], spec["versions"][0]
        resource = {
            "kind": names["kind"],
            "schema": version["schema"]["openAPIV3Schema"],
            "selectableFields": version.get("selectableFields", []),
        }
        for name in (names["kind"], names["plural"], names["singular"], *names["shortNames"]):
            yield name, resource


RESOURCES: Mapping[str, Mapping[str, Any]] = dict(_resources())
"""Kinds of ours by all their names: fields by which they can be selected, and their schema."""


@cache
def chart() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the chart's values and their schema."""
    folder = ROOT / "charts" / "asyncjob"
    return (
        yaml.safe_load((folder / "values.yaml").read_text(encoding="utf-8")),
        json.loads((folder / "values.schema.json").read_text(encoding="utf-8")),
    )


def documents_of(block: CodeBlock) -> Iterator[Any]:
    """Yield what a block has as YAML, or gives to a command; what the shell puts in stands in."""
    texts = [block.text] if block.language == "yaml" else []
    if block.language in {"console", "sh"}:
        texts = [text for one in commands_of(block) for text in one.documents]
    for text in texts:
        yield from yaml.safe_load_all(_COMMAND.sub("0af76519", text))


def complaints(document: Any) -> Iterator[str]:
    """Yield what is wrong with a manifest, a part of one, or values of the chart."""
    match document:
        case {"apiVersion": str(version), "kind": str(kind)} if version.startswith(f"{GROUP}/"):
            yield from _of_ours(document, kind, whole=True)
        case {"apiVersion": str(), "kind": str()}:
            return
        case dict() if set(document) <= {*_OWN, "metadata"}:
            yield from _of_ours(document, _kind_of(document), whole=False)
        case dict() if set(document) <= set(chart()[0]):
            yield from of_values(document)
        case {"dependsOn": _, **rest} if not rest:
            yield from _of_ours({"spec": document}, "AsyncJob", whole=False)
        case _:
            yield "nobody knows what it is for"


def _kind_of(document: Mapping[str, Any]) -> str:
    of_schedule = {"schedule", "jobTemplate", "backfill"}
    return "AsyncCronJob" if of_schedule & set(document.get("spec", {})) else "AsyncJob"


def _of_ours(document: Any, kind: str, *, whole: bool) -> Iterator[str]:
    if kind not in RESOURCES:
        yield f"there is no kind {kind}"
        return
    schema = RESOURCES[kind]["schema"]
    for error in jsonschema.Draft202012Validator(schema).iter_errors(document):
        if whole or error.validator != "required":
            yield f"{error.json_path}: {error.message}"
    for part in _OWN:
        if part in document and (path := unknown_path(document[part], RESOURCES[kind], part)):
            yield f"there is no {path}"


def unknown_path(value: Any, resource: Mapping[str, Any], *inside: str) -> str | None:
    """Return the path of the first field that the kind does not have, or None."""
    schema: Any = resource["schema"]
    for name in inside:
        schema = schema["properties"][name]
    return next(_unknown(value, schema, ".".join(inside)), None)


def _unknown(value: Any, schema: Any, path: str) -> Iterator[str]:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    match value:
        case dict():
            for name, inner in value.items():
                below = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
                if below is None:
                    yield f"{path}.{name}".lstrip(".")
                else:
                    yield from _unknown(inner, below, f"{path}.{name}")
        case list():
            for inner in value:
                yield from _unknown(inner, schema.get("items", {}), f"{path}[]")


def of_values(document: Any) -> Iterator[str]:
    """Yield what the chart's schema refuses of values."""
    values, schema = chart()
    for error in jsonschema.Draft202012Validator(schema).iter_errors(_merged(values, document)):
        yield f"{error.json_path}: {error.message}"


def _merged(base: Any, over: Any) -> Any:
    """Merge as helm does: null takes a key away."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    both = {**base, **{key: _merged(base.get(key), value) for key, value in over.items()}}
    return {key: value for key, value in both.items() if over.get(key, value) is not None}


def container_commands(document: Any) -> Iterator[str]:
    """Yield the command line of each container of ours in a manifest with a pod's template."""
    if isinstance(document, dict) and "apiVersion" in document:
        template = document.get("spec", {}).get("template", {}).get("spec", {})
        for container in template.get("containers", []):
            words = container.get("command") or ["asyncjob-worker", *container.get("args", [])]
            yield shlex.join(words)
