"""What a dishonest writer puts into a resource: each field of its schema, each value nobody means.

Bodies are JSON text: Python's own encoder gives up at a depth that the API server takes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import yaml

CRDS: Final = Path(__file__).parents[3] / "crds"
MARK: Final = "dishonest-value"
"""Stands for the value until the body is text."""

LEVELS: Final = (260, 990, 1100)
"""More than orjson writes, than Python's own recursion takes, than it reads; and than orjson reads.

All are far fewer than the API server takes.
"""

BIG: Final = 2**20

Steps = tuple[str | int, ...]


@dataclass(frozen=True)
class Value:
    """A value as JSON text, and what to call it."""

    name: str
    text: str
    is_object: bool = False


def values(foreign_uid: str) -> tuple[Value, ...]:
    """Return the values; `foreign_uid` is that of another tenant's object."""
    return (
        Value("year 0", '"0000-01-01T00:00:00Z"'),
        Value("year 9999", '"9999-12-31T23:59:59.999999Z"'),
        Value("minus one", "-1"),
        Value("beyond int64", str(2**63)),
        *(
            Value(f"{levels} levels", '{"a":' * levels + "1" + "}" * levels, is_object=True)
            for levels in LEVELS
        ),
        Value("a key of 1 MiB", f'{{"{"k" * BIG}":"1"}}', is_object=True),
        Value("foreign uid", json.dumps(foreign_uid)),
    )


def notations() -> tuple[Value, ...]:
    """Return the values of fields that name items of an array, as no client writes them."""
    scattered = [str(2 * number) for number in range(1001)]
    texts = {
        "a thousand ranges": ",".join(scattered[:1000]),
        "more ranges than there is room for": ",".join(scattered),
        "a thousand times the same item": ",".join(["0"] * 1000),
        "a thousand times all items": ",".join(["0-99999999"] * 1000),
        "all items that can be written": "0-99999999",
        "zeros in front": "00000000-00000009",
        "backwards": "9-0",
        "half a range": "0-,1",
        "an item beyond int64": str(2**63),
    }
    return tuple(Value(name, json.dumps(text)) for name, text in texts.items())


@dataclass(frozen=True)
class ResourceField:
    """One field of a resource, by the steps that lead to it.

    Large values are tried only where the schema takes an object: elsewhere they are refused for
    their type before anybody looks at them.
    """

    steps: Steps
    takes_objects: bool = False

    def __str__(self) -> str:
        """Return it as an error message would name it."""
        return ".".join(map(str, self.steps))

    def put(self, body: Mapping[str, Any], value: Value) -> str:
        """Return the body as JSON text with the value in this field."""
        filled = _put(json.loads(json.dumps(body)), self.steps)
        return json.dumps(filled).replace(f'"{MARK}"', value.text)


@cache
def schema(plural: str) -> dict[str, Any]:
    """Return the schema of the resource."""
    crd = yaml.safe_load((CRDS / f"{plural}.yaml").read_text(encoding="utf-8"))
    whole: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return whole


def schema_fields(plural: str, part: str) -> list[ResourceField]:
    """Return all fields of `spec` or `status`; the first item stands for those of a list."""
    return list(_walk(schema(plural)["properties"][part], (part,)))


def metadata_fields(labels: Sequence[str], annotations: Sequence[str]) -> list[ResourceField]:
    """Return the fields of metadata that somebody may come to believe."""
    return [
        *(ResourceField(("metadata", "labels", label)) for label in labels),
        *(ResourceField(("metadata", "annotations", one)) for one in annotations),
        ResourceField(("metadata", "labels"), takes_objects=True),
        ResourceField(("metadata", "annotations"), takes_objects=True),
        ResourceField(("metadata", "ownerReferences", 0, "uid")),
        ResourceField(("metadata", "finalizers", 0)),
        ResourceField(("metadata", "managedFields", 0, "time")),
        ResourceField(("metadata", "managedFields", 0, "fieldsV1"), takes_objects=True),
        ResourceField(("metadata", "creationTimestamp")),
        ResourceField(("metadata", "generation")),
    ]


def tried(
    fields: Sequence[ResourceField], foreign_uid: str
) -> Iterator[tuple[ResourceField, Value]]:
    """Yield each field with each value that gets as far as its schema."""
    for field in fields:
        for value in values(foreign_uid):
            if field.takes_objects or not value.is_object:
                yield field, value


def _walk(node: Mapping[str, Any], steps: Steps) -> Iterator[ResourceField]:
    inside = {**node.get("properties", {}), **({0: node["items"]} if "items" in node else {})}
    for step, inner in inside.items():
        takes_objects = inner.get("type", "object") == "object" and "properties" not in inner
        yield ResourceField((*steps, step), takes_objects)
        yield from _walk(inner, (*steps, step))


_COMPANY: Final[Mapping[str, Mapping[str, Any]]] = {
    "managedFields": {
        "manager": "asyncjob-worker",
        "operation": "Update",
        "apiVersion": "asyncjob.dev/v1alpha1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {}},
        "subresource": "status",
    },
    "ownerReferences": {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "none"},
}
"""What an entry of such a list needs beside the one field, or the API server drops it unread."""


def _put(body: Any, steps: Steps) -> Any:
    node = body
    for step, following in pairwise(steps):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(step, int):
            if not node:
                node.append(empty)
            node = node[0]
        else:
            if node.get(step) is None:
                node[step] = empty
            node = node[step]
            if node == [] and step in _COMPANY:
                node.append(dict(_COMPANY[step]))
    last = steps[-1]
    if isinstance(last, int):
        node[:] = [MARK]
    else:
        node[last] = MARK
    return body
