"""The chart's values as the reference shows them, and the copies that the chart holds."""

from pathlib import Path

import pytest

from asyncjob_dev.reference.installation import (
    chart_values,
    commented_keys,
    keys_in_schema,
    lookup,
    value_type,
)

ROOT = Path(__file__).parents[3]
TEXT = """
# Of another.

# How many there are,
# at most.
count: 3
pod:
  # Kubernetes' own.
  resources: {limits: {cpu: 1}}
  none: null
"""
SCHEMA = {
    "properties": {
        "count": {"type": ["integer", "null"]},
        "pod": {"$ref": "#/$defs/pod"},
        "many": {"type": "object", "additionalProperties": {"$ref": "#/$defs/pod"}},
        "list": {"type": "array", "items": {"enum": ["a", "b"]}},
    },
    "$defs": {"pod": {"properties": {"resources": {"type": "object"}, "none": {}}}},
}


def test_a_key_has_the_comment_directly_above_it() -> None:
    found = {".".join(key.path): (key.value, key.comment) for key in commented_keys(TEXT)}

    assert found == {
        "count": (3, "How many there are, at most."),
        "pod": ({"resources": {"limits": {"cpu": 1}}, "none": None}, ""),
        "pod.resources": ({"limits": {"cpu": 1}}, "Kubernetes' own."),
        "pod.none": (None, ""),
    }


def test_keys_within_objects_of_kubernetes_have_no_place_in_the_reference() -> None:
    block = TEXT.replace("{limits: {cpu: 1}}", "\n    limits: {cpu: 1}")
    found = [".".join(key.path) for key in keys_in_schema(block, SCHEMA)]

    assert found == ["count", "pod", "pod.resources", "pod.none"]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("count", "integer or null"),
        ("pod.resources", "object"),
        ("many.any.resources", "object"),
        ("pod.none", "any JSON"),
        ("list", "list of a or b"),
    ],
)
def test_a_value_has_the_type_that_its_schema_says(path: str, shown: str) -> None:
    assert value_type(lookup(SCHEMA, path.split(".")), SCHEMA) == shown


def test_a_value_without_a_schema_is_an_error() -> None:
    with pytest.raises(KeyError):
        lookup(SCHEMA, ["pod", "resource"])


def test_the_committed_reference_is_the_generated_one() -> None:
    assert chart_values() in (ROOT / "docs/reference/chart.md").read_text()


def test_the_committed_copy_of_the_roles_is_the_source() -> None:
    source, copy = ROOT / "dev/manifests/rbac.yaml", ROOT / "charts/asyncjob/files/rbac.yaml"
    assert copy.read_text() == source.read_text(), "run `make generate`"
