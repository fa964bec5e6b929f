"""Generated parts of the pages for operations.

The chart's values with their comments and schema, the roles with their rights, and the metrics of
each process.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from asyncjob.metrics import TABLE, Component, MetricSpec
from asyncjob_dev.reference.blocks import table

KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommentedKey:
    """One key: its path, its value, and the comment directly above it as one line."""

    path: KeyPath
    value: Any
    comment: str


def commented_keys(text: str) -> list[CommentedKey]:
    """Return every key of every block mapping, outer ones first; flow mappings are values."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    lines = text.splitlines()
    return list(_walk(node, (), lines)) if isinstance(node, yaml.MappingNode) else []


def _walk(node: yaml.MappingNode, at: KeyPath, lines: Sequence[str]) -> Iterator[CommentedKey]:
    for key, value in node.value:
        path = (*at, str(key.value))
        yield CommentedKey(path, _plain(value), _above(lines, key.start_mark.line))
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            yield from _walk(value, path, lines)


def _plain(node: yaml.Node) -> Any:
    return yaml.SafeLoader("").construct_object(node, deep=True)


def _above(lines: Sequence[str], line: int) -> str:
    found: list[str] = []
    while line > 0 and lines[line - 1].lstrip().startswith("#"):
        line -= 1
        found.insert(0, lines[line].strip().removeprefix("#").strip())
    return " ".join(found)


CHART = Path(__file__).resolve().parents[3] / "charts/asyncjob"
Schema = Mapping[str, Any]
ValueRow = tuple[str, str, str, str]


def chart_values() -> str:
    """Return a table for each part of the values."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    keys = keys_in_schema((CHART / "values.yaml").read_text(encoding="utf-8"), schema)
    return "\n\n".join(_section(group, schema) for group in _groups(keys))


def keys_in_schema(text: str, schema: Schema) -> list[CommentedKey]:
    """Return the values with a name in the schema: not what lies within Kubernetes' own objects."""
    return [
        key for key in commented_keys(text) if key.path[-1] in _known(lookup(schema, key.path[:-1]))
    ]


def _known(node: Schema) -> Sequence[str]:
    return list(node.get("properties", ()))


def _groups(keys: Sequence[CommentedKey]) -> Iterator[list[CommentedKey]]:
    """Return plain values together, and then each mapping with all below it."""
    inner = [key.path[0] for key in keys if len(key.path) > 1]
    yield [key for key in keys if key.path[0] not in inner]
    for name in dict.fromkeys(inner):
        yield [key for key in keys if key.path[0] == name]


def _section(group: Sequence[CommentedKey], schema: Schema) -> str:
    plain = len({key.path[0] for key in group}) > 1
    head = [] if plain else [f"### `{group[0].path[0]}`", *filter(None, [group[0].comment])]
    rows = [row for key in group for row in _rows(key, group, schema)]
    return "\n\n".join([*head, table(("Value", "Type", "Default", "Meaning"), rows)])


def _rows(key: CommentedKey, group: Sequence[CommentedKey], schema: Schema) -> Iterator[ValueRow]:
    if any(other.path[:-1] == key.path for other in group):
        return  # its keys have rows of their own
    found = lookup(schema, key.path)
    name = ".".join(key.path)
    yield f"`{name}`", value_type(found, schema), f"`{json.dumps(key.value)}`", key.comment
    yield from _inner(name, found, schema)


def _inner(name: str, node: Schema, schema: Schema) -> Iterator[ValueRow]:
    """Return rows for what values.yaml has no entry of: items of lists, entries of maps."""
    for suffix, found in (("[]", node.get("items", {})), (".NAME", _entries(node))):
        inner = resolved(found, schema)
        if any("description" in field for field in inner.get("properties", {}).values()):
            yield from _described(f"{name}{suffix}", inner, schema)


def _described(name: str, node: Schema, schema: Schema) -> Iterator[ValueRow]:
    for key, value in node["properties"].items():
        found = {**resolved(value, schema), **value}
        default = "required" if key in node.get("required", ()) else ""
        yield (
            f"`{name}.{key}`",
            value_type(found, schema),
            default,
            str(value.get("description", "")),
        )
        yield from _inner(f"{name}.{key}", found, schema)


def _entries(node: Schema) -> Schema:
    extra = node.get("additionalProperties")
    return extra if isinstance(extra, dict) else {}


def lookup(schema: Schema, path: Sequence[str]) -> Schema:
    """Return the schema of a value; raises KeyError where there is none."""
    node = resolved(schema, schema)
    for key in path:
        known = node.get("properties", {})
        node = resolved(known[key] if key in known else _open(node), schema)
    return node


def _open(node: Schema) -> Schema:
    """Return the schema of an entry of a map; a plain object takes anything."""
    if node.get("properties"):
        raise KeyError(str(sorted(node["properties"])))
    return _entries(node)


def resolved(node: Schema, schema: Schema) -> Schema:
    """Return a node, or the definition it refers to."""
    name = str(node.get("$ref", "")).removeprefix("#/$defs/")
    return schema["$defs"][name] if name else node


def value_type(node: Schema, schema: Schema) -> str:
    """Return the type of a value in words."""
    if "enum" in node:
        return " or ".join(str(item) for item in node["enum"])
    types = node.get("type", "any JSON")
    shown = types if isinstance(types, str) else " or ".join(types)
    if shown == "array":
        return f"list of {value_type(resolved(node['items'], schema), schema)}"
    return shown


ROLES = Path(__file__).resolve().parents[2] / "manifests/rbac.yaml"
Rule = Mapping[str, Any]


def role_rights() -> str:
    """Return a table for each role."""
    documents = ROLES.read_text(encoding="utf-8").split("\n---\n")
    return "\n\n".join(map(role_section, documents))


def role_section(document: str) -> str:
    """Return the heading and the table of one role."""
    role = yaml.safe_load(document)
    reasons = _reasons(document.split("\nrules:\n")[1].splitlines())
    rows = [
        (_verbs(rule), _resources(rule), reason)
        for rule, reason in zip(role["rules"], reasons, strict=True)
    ]
    heading = f"#### `{role['metadata']['name']}`"
    return f"{heading}\n\n{table(('May', 'On', 'In order to'), rows)}"


def _reasons(lines: Sequence[str]) -> Iterator[str]:
    """Yield what is said above each rule."""
    said: list[str] = []
    for line in lines:
        if line.startswith("# "):
            said.append(line.removeprefix("# "))
        elif line.startswith("- "):
            yield " ".join(said)
            said = []


def _verbs(rule: Rule) -> str:
    return ", ".join(rule["verbs"])


def _resources(rule: Rule) -> str:
    groups = ", ".join(group for group in rule["apiGroups"] if group)
    names = ", ".join(f"`{resource}`" for resource in rule["resources"])
    only = "".join(f", only `{name}`" for name in rule.get("resourceNames", ()))
    return f"{names}{f' of {groups}' if groups else ''}{only}"


def metrics_table(part: Component) -> str:
    """Return the table of a part: name, type, labels, unit, meaning."""
    rows = [_metric_row(spec) for spec in TABLE if spec.part is part]
    return table(("Metric", "Type", "Labels", "Unit", "Meaning"), rows)


def _metric_row(spec: MetricSpec) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in spec.labels)
    return f"`{spec.exposed_name}`", spec.kind.value, labels, spec.unit, spec.help
