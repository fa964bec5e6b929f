"""What of a CRD may not change from one version to the next, as data.

Pure. While an upgrade lasts, workers and operators of the version before read and write by the new
CRDs: what they write has to be known and allowed, what they read has to be there.
"""

from collections.abc import Iterator
from typing import Any, Final

Schema = dict[str, Any]

_LOWER_IS_STRICTER: Final = ("maxLength", "maxItems", "maxProperties", "maximum")
_HIGHER_IS_STRICTER: Final = ("minLength", "minItems", "minProperties", "minimum")
_FIXED: Final = ("type", "format", "pattern", "x-kubernetes-preserve-unknown-fields", "default")


def incompatibilities(before: Schema, after: Schema) -> list[str]:
    """Return what the new CRD would take from who goes by the old one; empty if nothing."""
    return [
        *_names(before["spec"], after["spec"]),
        *_columns(_version(before), _version(after)),
        *_selectable(_version(before), _version(after)),
        *_schema("", _root(before), _root(after)),
    ]


def _version(crd: Schema) -> Schema:
    found: Schema
    (found,) = [one for one in crd["spec"]["versions"] if one["name"] == "v1alpha1"]
    return found


def _root(crd: Schema) -> Schema:
    root: Schema = _version(crd)["schema"]["openAPIV3Schema"]
    return root


def _names(before: Schema, after: Schema) -> Iterator[str]:
    for field in ("group", "scope"):
        if before[field] != after[field]:
            yield f"{field} is {after[field]}, it was {before[field]}"
    for field in ("kind", "plural", "singular"):
        if before["names"].get(field) != after["names"].get(field):
            yield f"names.{field} has changed"
    for field in ("shortNames", "categories"):
        for gone in _gone(before["names"].get(field), after["names"].get(field)):
            yield f"names.{field}: {gone} is gone"


def _columns(before: Schema, after: Schema) -> Iterator[str]:
    """Compare what workers choose jobs by."""
    there = {one["name"]: one for one in after.get("additionalPrinterColumns", [])}
    for column in before.get("additionalPrinterColumns", []):
        name, new = column["name"], there.get(column["name"])
        if new is None:
            yield f"column {name} is gone"
        elif (column["type"], column["jsonPath"]) != (new["type"], new["jsonPath"]):
            yield f"column {name} shows something else"


def _selectable(before: Schema, after: Schema) -> Iterator[str]:
    there = [one["jsonPath"] for one in after.get("selectableFields", [])]
    for gone in _gone([one["jsonPath"] for one in before.get("selectableFields", [])], there):
        yield f"selectable field {gone} is gone"


def _schema(path: str, before: Schema, after: Schema) -> Iterator[str]:
    for field in _FIXED:
        if before.get(field) != after.get(field):
            yield f"{path or '.'}: {field} has changed"
    yield from (f"{path}: value {gone} is gone" for gone in _gone(*_enums(before, after)))
    yield from _bounds(path, before, after)
    yield from _required(path, before, after)
    for name, schema in before.get("properties", {}).items():
        new = after.get("properties", {}).get(name)
        if new is None:
            yield f"{path}.{name} is gone"
        else:
            yield from _schema(f"{path}.{name}", schema, new)
    for inner, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(before.get(inner), dict) and isinstance(after.get(inner), dict):
            yield from _schema(path + mark, before[inner], after[inner])


def _enums(before: Schema, after: Schema) -> tuple[Any, Any]:
    """Return the values before and after; one that is lifted takes nothing."""
    if "enum" in after and "enum" not in before:
        return ["any"], []
    return (before.get("enum"), after["enum"]) if "enum" in after else (None, None)


def _bounds(path: str, before: Schema, after: Schema) -> Iterator[str]:
    infinite = float("inf")
    for field in _LOWER_IS_STRICTER:
        if after.get(field, infinite) < before.get(field, infinite):
            yield f"{path}: {field} is lower"
    for field in _HIGHER_IS_STRICTER:
        if after.get(field, -infinite) > before.get(field, -infinite):
            yield f"{path}: {field} is higher"


def _required(path: str, before: Schema, after: Schema) -> Iterator[str]:
    new = _gone(after.get("required"), before.get("required"))
    yield from (f"{path}.{name} is required now" for name in new)


def _gone(before: Any, after: Any) -> list[str]:
    return [str(one) for one in before or () if one not in (after or ())]
