"""pydantic's JSON schema → the structural OpenAPI v3 schema that a CRD takes.

Knows shapes only. Whatever it does not understand, and every string, list or map without a
maximum, is an error that names the field: an unbounded one exceeds the budget for CEL.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from asyncjob.errors import AsyncJobError
from asyncjob.json_types import Json, JsonObject, as_object, child, items, text


class SchemaError(AsyncJobError):
    """A model cannot be expressed as a structural schema."""


Schema = dict[str, Json]
Path = tuple[str, ...]

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
VALIDATIONS: Final = "x-kubernetes-validations"

_COPIED: Final = ("description", "default", "enum", "format", "pattern", "nullable")
_BOUNDS: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_UNDERSTOOD: Final = frozenset(
    {"type", "title", "properties", "required", "items", "additionalProperties", "const"}
    | {PRESERVE, VALIDATIONS}
    | set(_COPIED)
    | {name for names in _BOUNDS.values() for name in names}
)
_GRANULAR: Final[frozenset[Path]] = frozenset({(), ("spec",)})
"""All other objects are atomic, which keeps managedFields small; and these take part in each write.

A spec has several authors, who each apply fields of their own; a status is only ever written by
our parts, whole in effect.
"""


def structural(
    model: type[BaseModel], rules: Mapping[str, tuple[JsonObject, ...]] | None = None
) -> Schema:
    """Return the schema of the model.

    `rules` are the validations of each class (`Class`) and of fields (`Class.field`).
    """
    document = model.model_json_schema(by_alias=True)
    converter = _Converter(child(document, "$defs"), rules or {})
    own = {name: value for name, value in document.items() if name != "$defs"}
    name = model.__name__
    return converter.convert({**own, **converter.validations(name)}, (), (name,))


@dataclass(frozen=True)
class _Converter:
    definitions: JsonObject
    rules: Mapping[str, tuple[JsonObject, ...]]

    def validations(self, name: str) -> Schema:
        found = self.rules.get(name)
        return {VALIDATIONS: list(found)} if found else {}

    def convert(self, node: JsonObject, path: Path, inside: tuple[str, ...]) -> Schema:
        node = self._without_null(node, path)
        if "$ref" in node:
            node, inside = self._inline(node, path, inside)
        _refuse_unknown(node, path)
        schema = {name: node[name] for name in _COPIED if node.get(name) is not None}
        if PRESERVE in node:
            return {**schema, PRESERVE: True, "nullable": True}
        kind = _kind(node, path)
        bounds = {name: node[name] for name in _BOUNDS[kind] if name in node}
        return {
            "type": kind,
            **schema,
            **bounds,
            **_constant_enum(node),
            **self._inner(kind, node, path, inside),
            **{name: node[name] for name in (VALIDATIONS,) if name in node},
        }

    def _without_null(self, node: JsonObject, path: Path) -> JsonObject:
        """Read optional as absent: null itself is not a value on the wire."""
        if "anyOf" not in node:
            return node
        others = [one for one in map(as_object, items(node, "anyOf")) if one.get("type") != "null"]
        if len(others) != 1:
            raise SchemaError(
                f"{_dotted_path(path)}: a union of {len(others)} types is not structural"
            )
        return {**others[0], **{name: node[name] for name in node if name != "anyOf"}}

    def _inline(
        self, node: JsonObject, path: Path, inside: tuple[str, ...]
    ) -> tuple[Schema, tuple[str, ...]]:
        name = text(node, "$ref").rpartition("/")[2]
        if name in inside:
            raise SchemaError(
                f"{_dotted_path(path)}: {name} contains itself, which is not structural"
            )
        siblings = {key: node[key] for key in node if key != "$ref"}
        merged = {**child(self.definitions, name), **self.validations(name), **siblings}
        return merged, (*inside, name)

    def _inner(self, kind: str, node: JsonObject, path: Path, inside: tuple[str, ...]) -> Schema:
        if kind == "string":
            _require_bound(node, path, "maxLength", "enum", "const")
        elif kind == "array":
            return self._list(node, path, inside)
        elif kind == "object":
            return self._object(node, path, inside)
        return {}

    def _list(self, node: JsonObject, path: Path, inside: tuple[str, ...]) -> Schema:
        _require_bound(node, path, "maxItems")
        item = self.convert(child(node, "items"), (*path, "[]"), inside)
        return {"items": item, "x-kubernetes-list-type": "atomic"}

    def _object(self, node: JsonObject, path: Path, inside: tuple[str, ...]) -> Schema:
        atomic = {} if path in _GRANULAR else {"x-kubernetes-map-type": "atomic"}
        if "properties" not in node:
            return {**self._map(node, path, inside), **atomic}
        properties = {
            name: self._property(name, as_object(value), path, inside)
            for name, value in child(node, "properties").items()
            if path or name not in {"apiVersion", "kind", "metadata"}
        }
        if not path:
            properties = {"metadata": {"type": "object"}, **properties}
        required = {"required": node["required"]} if node.get("required") else {}
        return {**required, "properties": properties, **atomic}

    def _property(self, name: str, node: JsonObject, path: Path, inside: tuple[str, ...]) -> Schema:
        rules = self.validations(f"{inside[-1]}.{name}")
        return {**self.convert(node, (*path, name), inside), **rules}

    def _map(self, node: JsonObject, path: Path, inside: tuple[str, ...]) -> Schema:
        _require_bound(node, path, "maxProperties")
        values = node.get("additionalProperties")
        if not isinstance(values, Mapping):
            raise SchemaError(f"{_dotted_path(path)}: a map needs a schema for its values")
        return {"additionalProperties": self.convert(values, (*path, "*"), inside)}


def _kind(node: JsonObject, path: Path) -> str:
    kind = node.get("type")
    if kind is None and isinstance(node.get("const"), str):
        return "string"
    if not isinstance(kind, str) or kind not in _BOUNDS:
        raise SchemaError(f"{_dotted_path(path)}: type {kind!r} is not structural")
    return kind


def _constant_enum(node: JsonObject) -> Schema:
    return {"enum": [node["const"]]} if "const" in node else {}


def _refuse_unknown(node: JsonObject, path: Path) -> None:
    unknown = sorted(set(node) - _UNDERSTOOD)
    if unknown:
        raise SchemaError(f"{_dotted_path(path)}: cannot express {', '.join(unknown)}")


def _require_bound(node: JsonObject, path: Path, *bounds: str) -> None:
    if not any(bound in node for bound in bounds):
        raise SchemaError(
            f"{_dotted_path(path)}: needs {' or '.join(bounds)}, so that CEL stays cheap"
        )


def _dotted_path(path: Path) -> str:
    return "." + ".".join(path)
